r"""Search graphs in the form of ``moses -output-search-graph-hypergraph true gz DIR``, a file ``DIR/ID.gz`` a sentence.

::

    # target ||| features ||| source-covered
    816 8769                                          nodes, arcs
    # node 0
    1                                                 arcs that end here
    <s> |||  ||| 0
    # node 1
    1
    [0] ne m&apos; ont  ||| UnknownWordPenalty0=0.000000 … LM0=-13.942932  ||| 1
    # node 815
    43
    [772] </s> |||  ||| 6                             the end: no features, no words

An arc's line begins with the node where it begins, in square brackets; the rest are words, even where they look like
that. In a stream several graphs follow one another; a line ``# sentence ID`` in front of one says which it is.

The text of a sentence is read as a whole, with NumPy; line by line only where that fails, to read what is rare (sparse
features, other forms of numbers) or to name the line that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.graphs.extended import fixed_numbers
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import Floats, Ints, PhraseGraph, Words
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


HEADER = b"# target ||| features ||| source-covered"
SENTENCE = b"# sentence "
_LARGEST = 1 << 30  # bytes of one sentence
_COUNTS = re.compile(rb"([0-9]{1,9}) ([0-9]{1,9})[ \r]*")


def read_hypergraphs(
    blocks: Iterable[bytes], features: GraphFeatures, *, path: str, first: int = 0
) -> Iterator[PhraseGraph]:
    """The graphs of a text; the sentence is ``first`` and then one more each time, where no line says otherwise.

    Raises FormatError, naming the line of ``path``, for a malformed graph, a feature that ``features`` do not know, and
    graphs of chart decoders.
    """
    sentence, line = first, 1
    for content in _cut_at_beginnings(blocks, path):
        text = GraphText(path, line, content)
        head, given = _head(text)
        graph = _read_graph(text, head, features, sentence if given is None else given)
        yield graph
        sentence, line = graph.sentence + 1, line + len(text)


def format_hypergraph(graph: PhraseGraph) -> bytes:
    """The text of a graph that was read from one: its arcs as they stood, nodes without arcs left out."""
    numbers = np.full(graph.nodes, -1, np.int64)
    used = np.union1d(np.union1d(graph.starts_E, graph.ends_E), [0, graph.nodes - 1])
    numbers[used] = np.arange(len(used))
    lines = [SENTENCE + b"%d" % graph.sentence, HEADER, b"%d %d" % (len(used), graph.arcs + 1)]
    lines += [b"# node 0", b"1", b"<s> |||  ||| 0"]
    starts = numbers[graph.starts_E].tolist()
    places = graph.lines_E.tolist()
    borders = [*np.searchsorted(graph.ends_E, used[1:]).tolist(), graph.arcs]
    for number, (begin, end) in enumerate(pairwise(borders), start=1):
        lines += [b"# node %d" % number, b"%d" % (end - begin)]
        lines += [b"[%d]%b" % (starts[arc], graph.lines[places[arc]].partition(b"]")[2]) for arc in range(begin, end)]
    return b"\n".join(lines) + b"\n"


def _cut_at_beginnings(blocks: Iterable[bytes], path: str) -> Iterator[bytes]:
    """The text of one graph after the other."""
    waiting, looked = bytearray(), 0
    for block in blocks:
        waiting += block
        while (place := waiting.find(b"\n" + HEADER, looked)) >= 0:
            before = waiting.rfind(b"\n", 0, place) + 1
            begin = before if waiting.startswith(SENTENCE, before) else place + 1
            if begin:
                yield bytes(waiting[:begin])
                del waiting[:begin]
            looked = place + 1 - begin
        looked = max(looked, len(waiting) - len(HEADER))
        if len(waiting) > _LARGEST:
            raise FormatError(path, f"one graph is larger than {_LARGEST >> 20} MiB; is this the right file?")
    if waiting:
        yield bytes(waiting)


def _head(text: GraphText) -> tuple[int, int | None]:
    """The place of the line with the counts, and the sentence that a line names."""
    sentence = None
    place = 0
    if text[0].startswith(SENTENCE):
        number = text[0][len(SENTENCE) :].strip(BLANKS + b"\r")
        if not number.isdigit() or len(number) > 15:
            raise text.error(0, "expected `# sentence ID` with a whole number from 0")
        sentence, place = int(number), 1
    if place >= len(text) or text[place].rstrip(BLANKS + b"\r") != HEADER:
        raise text.error(place, f"expected `{HEADER.decode()}`")
    return place + 1, sentence


def _read_graph(text: GraphText, head: int, features: GraphFeatures, sentence: int) -> PhraseGraph:
    layout = _layout(text, head)
    columns = arcs_at_once(text, layout, features) or arcs_one_by_one(text, layout, features)
    wrong = np.flatnonzero(columns.starts_E >= layout.ends_E)
    if wrong.size:
        arc = wrong[0]
        problem = (
            f"an arc from node {columns.starts_E[arc]} to node {layout.ends_E[arc]}; expected an earlier beginning"
        )
        raise text.error(int(layout.places_E[arc]), problem)
    numbers: dict[bytes, int] = {}
    phrases_E = np.array([numbers.setdefault(phrase, len(numbers)) for phrase in columns.texts], np.int64)
    return PhraseGraph(
        sentence=sentence,
        nodes=layout.nodes,
        starts_E=columns.starts_E,
        ends_E=layout.ends_E,
        phrases_E=phrases_E,
        phrases=tuple(_words(phrase) for phrase in numbers),
        features_ED=columns.features_ED,
        sparse=columns.sparse,
        lines_E=np.arange(len(phrases_E)),
        lines=text.at(layout.places_E),
        head=b"",
        line=text.first,
    )


def _words(phrase: bytes) -> Words:
    words = tuple(split_tokens(phrase))
    return () if words == (b"</s>",) else words


def _layout(text: GraphText, head: int) -> Layout:
    """Which line is what. Raises FormatError where nodes and arcs are not those that were announced."""
    counts = _COUNTS.fullmatch(text[head]) if head < len(text) else None
    if counts is None:
        raise text.error(head, "expected the numbers of nodes and arcs, such as `816 8769`")
    nodes, arcs = int(counts[1]), int(counts[2])
    sizes, place = [], head + 1
    for node in range(nodes):
        if place + 1 >= len(text) or text[place].rstrip(b" \r") != b"# node %d" % node:
            raise text.error(place, f"expected `# node {node}` of {counted(nodes, 'node')}, and the number of its arcs")
        size = text[place + 1].rstrip(b" \r")
        if not size.isdigit() or len(size) > 9:
            raise text.error(place + 1, f"expected the number of arcs that end at node {node}")
        sizes.append(int(size))
        place += 2 + sizes[-1]
    if place != len(text) or sum(sizes) != arcs:
        problem = (
            f"expected {counted(arcs, 'arc')} of {counted(nodes, 'node')} but there are others; is the file complete?"
        )
        raise text.error(min(place, len(text)) - 1, problem)
    if nodes < 2 or sizes[0] != 1 or text[head + 3].split(SEPARATOR)[0].strip(BLANKS) != b"<s>":
        raise text.error(head + 3, f"expected node 0 with `<s> |||  ||| 0` and a node more; {EXPECTED}")
    begins = np.cumsum([head + 3, *(size + 2 for size in sizes[:-1])])
    places = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)][1:])
    return Layout(nodes, places, np.repeat(np.arange(1, nodes), sizes[1:]))
