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
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.graphs.extended import NUMBER
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


class GraphText(NamedTuple):
    """The lines of one graph, the first of which is line ``first`` of the file."""

    path: str
    first: int
    lines: list[bytes]

    def error(self, place: int, problem: str) -> FormatError:
        """What to raise about the line at a place, the last one where there is none."""
        return FormatError(self.path, problem, line=self.first + min(place, len(self.lines) - 1))


class Layout(NamedTuple):
    """Where the lines of the arcs are: their numbers in the text, from 0, and the nodes they end at."""

    nodes: int
    places_E: Ints
    ends_E: Ints


class _Arcs(NamedTuple):
    """What the lines of the arcs say."""

    starts_E: Ints
    texts: list[bytes]
    features_ED: Floats
    sparse: dict[int, dict[str, float]]


def _read_arcs(text: GraphText, layout: Layout, features: GraphFeatures) -> _Arcs:
    """The arcs; those with the features of the first, as Moses writes them, are matched as a whole."""
    places = {label: place for place, label in enumerate(features.labels)}
    arcs = _Arcs(np.zeros(len(layout.places_E), np.int64), [], np.zeros((len(layout.places_E), len(places))), {})
    usual, order = None, list[int]()
    matched, rows = list[int](), list[tuple[bytes, ...]]()
    for arc, (place, end) in enumerate(zip(layout.places_E.tolist(), layout.ends_E.tolist(), strict=True)):
        fields = text.lines[place].split(SEPARATOR)
        beginning = _ARC.match(fields[0])
        if len(fields) != 3 or beginning is None:
            raise text.error(place, EXPECTED)
        arcs.starts_E[arc] = int(beginning[1])
        arcs.texts.append(fields[0][beginning.end() :])
        found = usual and usual(fields[1])
        if found:
            matched.append(arc)
            rows.append(found.groups())
            continue
        tokens = split_tokens(fields[1])
        if end == layout.nodes - 1 and not tokens:
            continue
        try:
            arcs.features_ED[arc], sparse = _parse_features(tokens, places)
        except ValueError as error:
            raise text.error(place, str(error)) from None
        except KeyError as error:
            problem = f"the feature {error.args[0]} is not one of {features.path}; give the moses.ini of this run"
            raise text.error(place, problem) from None
        if sparse:
            arcs.sparse[arc] = sparse
        elif usual is None:
            labels = [token.partition(b"=")[0] for token in tokens]
            order = [places[label.decode("utf-8", "surrogateescape")] for label in labels]
            usual = re.compile(
                b" *" + b" ".join(re.escape(label) + b"=(%b)" % NUMBER for label in labels) + b" *"
            ).fullmatch
    if rows:
        arcs.features_ED[np.ix_(matched, order)] = np.array(rows, np.float64)
    return arcs


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
        text = GraphText(path, line, content.removesuffix(b"\n").split(b"\n"))
        head, given = _head(text)
        graph = _read_graph(text, head, features, sentence if given is None else given)
        yield graph
        sentence, line = graph.sentence + 1, line + len(text.lines)


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
    if text.lines[0].startswith(SENTENCE):
        number = text.lines[0][len(SENTENCE) :].strip(BLANKS + b"\r")
        if not number.isdigit() or len(number) > 15:
            raise text.error(0, "expected `# sentence ID` with a whole number from 0")
        sentence, place = int(number), 1
    if place >= len(text.lines) or text.lines[place].rstrip(BLANKS + b"\r") != HEADER:
        raise text.error(place, f"expected `{HEADER.decode()}`")
    return place + 1, sentence


def _read_graph(text: GraphText, head: int, features: GraphFeatures, sentence: int) -> PhraseGraph:
    layout = _layout(text, head)
    arcs = _read_arcs(text, layout, features)
    wrong = np.flatnonzero(arcs.starts_E >= layout.ends_E)
    if wrong.size:
        arc = wrong[0]
        problem = f"an arc from node {arcs.starts_E[arc]} to node {layout.ends_E[arc]}; expected an earlier beginning"
        raise text.error(int(layout.places_E[arc]), problem)
    numbers: dict[bytes, int] = {}
    phrases_E = np.array([numbers.setdefault(phrase, len(numbers)) for phrase in arcs.texts], np.int64)
    return PhraseGraph(
        sentence=sentence,
        nodes=layout.nodes,
        starts_E=arcs.starts_E,
        ends_E=layout.ends_E,
        phrases_E=phrases_E,
        phrases=tuple(_words(phrase) for phrase in numbers),
        features_ED=arcs.features_ED,
        sparse=arcs.sparse,
        lines_E=np.arange(len(phrases_E)),
        lines=tuple(text.lines[place] for place in layout.places_E.tolist()),
        head=b"",
        line=text.first,
    )


def _words(phrase: bytes) -> Words:
    words = tuple(split_tokens(phrase))
    return () if words == (b"</s>",) else words


def _layout(text: GraphText, head: int) -> Layout:
    """Which line is what. Raises FormatError where nodes and arcs are not those that were announced."""
    counts = _COUNTS.fullmatch(text.lines[head]) if head < len(text.lines) else None
    if counts is None:
        raise text.error(head, "expected the numbers of nodes and arcs, such as `816 8769`")
    nodes, arcs = int(counts[1]), int(counts[2])
    sizes, place = [], head + 1
    for node in range(nodes):
        if place + 1 >= len(text.lines) or text.lines[place].rstrip(b" \r") != b"# node %d" % node:
            raise text.error(place, f"expected `# node {node}` of {counted(nodes, 'node')}, and the number of its arcs")
        size = text.lines[place + 1].rstrip(b" \r")
        if not size.isdigit() or len(size) > 9:
            raise text.error(place + 1, f"expected the number of arcs that end at node {node}")
        sizes.append(int(size))
        place += 2 + sizes[-1]
    if place != len(text.lines) or sum(sizes) != arcs:
        problem = (
            f"expected {counted(arcs, 'arc')} of {counted(nodes, 'node')} but there are others; is the file complete?"
        )
        raise text.error(min(place, len(text.lines)) - 1, problem)
    if nodes < 2 or sizes[0] != 1 or text.lines[head + 3].split(SEPARATOR)[0].strip(BLANKS) != b"<s>":
        raise text.error(head + 3, f"expected node 0 with `<s> |||  ||| 0` and a node more; {EXPECTED}")
    begins = np.cumsum([head + 3, *(size + 2 for size in sizes[:-1])])
    places = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)][1:])
    return Layout(nodes, places, np.repeat(np.arange(1, nodes), sizes[1:]))
