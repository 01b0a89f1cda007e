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
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.hypergraph_arcs import EXPECTED, GraphText, Layout, arcs_at_once, arcs_one_by_one
from smt_bridge.graphs.phrase_graph import PhraseGraph, Words
from smt_bridge.moses_lines import BLANKS, split_fields, split_tokens

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
    if nodes < 2 or sizes[0] != 1 or split_fields(text[head + 3], at_most=3)[0].strip(BLANKS) != b"<s>":
        raise text.error(head + 3, f"expected node 0 with `<s> |||  ||| 0` and a node more; {EXPECTED}")
    begins = np.cumsum([head + 3, *(size + 2 for size in sizes[:-1])])
    places = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)][1:])
    return Layout(nodes, places, np.repeat(np.arange(1, nodes), sizes[1:]))
