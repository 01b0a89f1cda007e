"""The arcs of a search graph in Moses' hypergraph format: all lines at once with NumPy, or one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import FormatError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.fixed_numbers import fixed_numbers
from smt_bridge.graphs.phrase_graph import Floats, Ints
from smt_bridge.moses_lines import BLANKS, SEPARATOR, split_tokens
from smt_bridge.nbest.entry import is_usable

EXPECTED = (
    "expected `[NODE] words ||| Feature=0.5 ... ||| covered`; is it the graph of a chart decoder (moses_chart)?"
    " Only those of phrase-based search can be read"
)
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ARC = re.compile(rb"\[([0-9]{1,9})\](?:[ \t]|$)")
_DECIMALS = 6
_BAR, _NEWLINE, _EQUALS, _BLANK, _OPENING, _CLOSING = b"|\n= []"


class GraphText:
    """The lines of one graph."""

    def __init__(self, path: str, first: int, content: bytes) -> None:
        self.path, self.first = path, first
        self.content = content if content.endswith(b"\n") else content + b"\n"
        self.octets = np.frombuffer(self.content, np.uint8)
        self.ends = np.flatnonzero(self.octets == _NEWLINE)
        self.begins = np.append(0, self.ends[:-1] + 1)

    def __getitem__(self, place: int) -> bytes:
        return self.content[self.begins[place] : self.ends[place]]

    def at(self, places: Ints) -> tuple[bytes, ...]:
        """The lines at these places."""
        spans = zip(self.begins[places].tolist(), self.ends[places].tolist(), strict=True)
        return tuple([self.content[begin:end] for begin, end in spans])

    def __len__(self) -> int:
        return len(self.ends)

    def error(self, place: int, problem: str) -> FormatError:
        """What to raise about the line at a place, the last one where there is none."""
        return FormatError(self.path, problem, line=self.first + min(place, len(self) - 1))


class Layout(NamedTuple):
    """Where the lines of the arcs are: their numbers in the text, from 0, and the nodes they end at."""

    nodes: int
    places_E: Ints
    ends_E: Ints


class ArcColumns(NamedTuple):
    """What the lines of the arcs say."""

    starts_E: Ints
    texts: list[bytes]
    features_ED: Floats
    sparse: dict[int, dict[str, float]]


def arcs_at_once(text: GraphText, layout: Layout, features: GraphFeatures) -> ArcColumns | None:
    """All arcs of lines that are written as Moses does, with the same features; None where one is different."""
    octets, content = text.octets, text.content
    begins_E, ends_E = text.begins[layout.places_E], text.ends[layout.places_E]
    bars, closings = np.flatnonzero(octets == _BAR), np.flatnonzero(octets == _CLOSING)
    first_E = np.searchsorted(bars, begins_E)
    closing_E = np.searchsorted(closings, begins_E)
    if not len(first_E) or (np.searchsorted(bars, ends_E) - first_E != 6).any() or closing_E[-1] >= len(closings):
        return None
    bars_E6 = bars[first_E[:, None] + np.arange(6)]
    closing_E = closings[closing_E]
    if (np.diff(bars_E6)[:, [0, 1, 3, 4]] != 1).any() or (closing_E > bars_E6[:, 0]).any():
        return None
    starts_E = fixed_numbers(octets, begins_E + 1, closing_E, decimals=0)
    if starts_E is None or (starts_E < 0).any():
        return None
    if (octets[begins_E] != _OPENING).any() or (octets[closing_E + 1] != _BLANK).any():
        return None
    features_ED = _features_at_once(text, bars_E6[:, 2] + 1, bars_E6[:, 3], layout.ends_E == layout.nodes - 1, features)
    if features_ED is None:
        return None
    spans = zip((closing_E + 1).tolist(), bars_E6[:, 0].tolist(), strict=True)
    return ArcColumns(starts_E.astype(np.int64), [content[begin:end] for begin, end in spans], features_ED, {})


def _features_at_once(
    text: GraphText, begins_E: Ints, ends_E: Ints, last_E: npt.NDArray[np.bool_], features: GraphFeatures
) -> Floats | None:
    """The fields of features, which are empty where an arc ends at the last node."""
    octets, size = text.octets, len(features.labels)
    equals = np.flatnonzero(octets == _EQUALS)
    first_E = np.searchsorted(equals, begins_E)
    if (np.searchsorted(equals, ends_E) - first_E != np.where(last_E, 0, size)).any():
        return None
    rows = np.flatnonzero(~last_E)
    features_ED = np.zeros((len(begins_E), size))
    if not rows.size:
        return features_ED
    field = text.content[begins_E[rows[0]] : ends_E[rows[0]]]
    labels = [token.partition(b"=")[0] for token in split_tokens(field)]
    places = {label.encode("utf-8", "surrogateescape"): place for place, label in enumerate(features.labels)}
    blank = len(field) - len(field.rstrip(b" "))
    equals_RD = equals[first_E[rows][:, None] + np.arange(size)]
    if sorted(labels) != sorted(places) or (equals_RD[:, 0] - len(labels[0]) - 1 != begins_E[rows]).any():
        return None
    for column, label in enumerate(labels):
        if not _all_are(text.content, b" %b=" % label, equals_RD[:, column] - len(label) - 1):
            return None
    ends_RD = np.empty_like(equals_RD)
    ends_RD[:, :-1] = equals_RD[:, 1:] - np.array([len(label) + 1 for label in labels[1:]], np.int64)
    ends_RD[:, -1] = ends_E[rows] - blank
    numbers_RD = fixed_numbers(octets, equals_RD + 1, ends_RD, decimals=_DECIMALS)
    if numbers_RD is None or not _all_are(text.content, b" " * blank, ends_RD[:, -1]):
        return None
    features_ED[rows[:, None], np.array([places[label] for label in labels], np.int64)] = numbers_RD
    rest = np.flatnonzero(last_E)
    return None if any(text.content[begins_E[arc] : ends_E[arc]].strip(BLANKS) for arc in rest) else features_ED


def _all_are(content: bytes, wanted: bytes, begins: Ints) -> bool:
    """Whether ``wanted`` stands at all these places."""
    if not wanted:
        return True
    size = len(wanted)
    if begins.min() < 0 or begins.max() + size > len(content):
        return False
    windows: npt.NDArray[np.void] = np.ndarray(
        (len(content) - size + 1,), np.dtype((np.void, size)), buffer=content, strides=(1,)
    )
    return windows[begins].tobytes() == wanted * len(begins)


def arcs_one_by_one(text: GraphText, layout: Layout, features: GraphFeatures) -> ArcColumns:
    """The same line by line, which takes several times as long."""
    places = {label: place for place, label in enumerate(features.labels)}
    columns = ArcColumns(
        np.zeros(len(layout.places_E), np.int64), [], np.zeros((len(layout.places_E), len(places))), {}
    )
    for arc, (place, end) in enumerate(zip(layout.places_E.tolist(), layout.ends_E.tolist(), strict=True)):
        fields = text[place].split(SEPARATOR)
        beginning = _ARC.match(fields[0])
        if len(fields) != 3 or beginning is None:
            raise text.error(place, EXPECTED)
        columns.starts_E[arc] = int(beginning[1])
        columns.texts.append(fields[0][beginning.end() :])
        tokens = split_tokens(fields[1])
        if end == layout.nodes - 1 and not tokens:
            continue
        try:
            columns.features_ED[arc], sparse = _parse_features(tokens, places)
        except ValueError as error:
            raise text.error(place, str(error)) from None
        except KeyError as error:
            problem = f"the feature {error.args[0]} is not one of {features.path}; give the moses.ini of this run"
            raise text.error(place, problem) from None
        if sparse:
            columns.sparse[arc] = sparse
    return columns


def _parse_features(tokens: Sequence[bytes], places: dict[str, int]) -> tuple[Floats, dict[str, float]]:
    """Dense values in their columns, and sparse ones by name. Raises ValueError, and KeyError for an unknown name."""
    values = np.full(len(places), np.nan)
    sparse: dict[str, float] = {}
    for token in tokens:
        label, _, number = token.rpartition(b"=")
        if not label or not _NUMBER.fullmatch(number) or not is_usable(float(number)):
            raise ValueError(f"'{token[:60].decode('utf-8', 'replace')}' is not `Feature=number`")
        name = label.decode("utf-8", "surrogateescape")
        place = places.get(name)
        if place is None and "_" not in name:
            raise KeyError(name)
        if name in sparse or (place is not None and not np.isnan(values[place])):
            raise ValueError(f"the feature {name} is given twice")
        if place is None:
            sparse[name] = float(number)
        else:
            values[place] = float(number)
    absent = [name for name, place in places.items() if np.isnan(values[place])]
    if absent:
        raise ValueError(f"has no value of the feature {absent[0]}, which moses.ini has; is it of another system?")
    return values, sparse
