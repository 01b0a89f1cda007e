"""Moses' search graphs, in whichever of two forms they were written; what the commands use.

``hypergraph`` and ``extended_graph`` say what the forms are.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.files import is_written_through, read_blocks, read_lines
from smt_bridge.errors import FormatError
from smt_bridge.graphs.extended import BEGINNING, format_extended_graph, read_extended_graphs
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.hypergraph import HEADER, SENTENCE, format_hypergraph, read_hypergraphs
from smt_bridge.graphs.phrase_graph import PhraseGraph

_NUMBERED = re.compile(r"([0-9]{1,15})(?:\.[A-Za-z0-9.]+)?")


def numbered_files(path: str) -> list[tuple[str, int]]:
    """The files at ``path``, each with the sentence that it begins with where none is named in it."""
    if os.path.isdir(path):
        return [(os.path.join(path, name), sentence) for sentence, name in _numbered(path)]
    found = None if is_written_through(path) else _NUMBERED.fullmatch(os.path.basename(path))
    return [(path, int(found[1]) if found else 0)]


def _numbered(folder: str) -> list[tuple[int, str]]:
    """The files of a folder that are called after a sentence, by number."""
    found = [(int(match[1]), name) for name in os.listdir(folder) if (match := _NUMBERED.fullmatch(name))]
    if not found:
        raise InputError(folder, "has no files called after sentences, such as 0.gz; expected what moses wrote there")
    return sorted(found)


_MOST_WORDS = 500  # of a phrase; what works word by word takes the square of it
_EXPECTED = (
    "expected a search graph as `moses -output-search-graph-hypergraph true gz DIR` or `-output-search-graph-extended"
    " FILE` writes it; those of chart decoders, word graphs and SLF lattices cannot be read"
)


def read_graphs(path: str, features: GraphFeatures) -> Iterator[PhraseGraph]:
    """Yield the graphs of a file, or of the files ``ID``, ``ID.gz``… of a folder, one sentence at a time.

    A hypergraph is of the sentence that a line in front of it names, else of the one that its file is called after
    (but not a pipe such as ``/dev/fd/63``), else of its place. Raises FormatError, naming file and line, for what is no
    graph and for ids that do not ascend, WiringError for a graph that does not go with ``features``.
    """
    last = -1
    for file, sentence in numbered_files(path):
        for graph in _parse(iter(read_blocks(file)), features, file, sentence):
            if graph.sentence <= last:
                problem = f"sentence {graph.sentence} comes after {last}; expected ascending ids, each once"
                raise FormatError(file, problem, line=graph.line)
            yield graph
            last = graph.sentence


def read_graph(content: bytes, features: GraphFeatures, *, path: str) -> PhraseGraph:
    """The graph of one sentence from the text of either form; ``path`` is its name in errors.

    Raises FormatError and WiringError as ``read_graphs``, also where there are several.
    """
    first, *others = _parse(iter([content]), features, path, 0)
    if others:
        raise FormatError(path, "has several graphs; expected that of one sentence", line=others[0].line)
    return first


def beside_lines(text: str, graphs: Iterable[PhraseGraph], *, path: str) -> Iterator[tuple[bytes, PhraseGraph | None]]:
    """Every line of ``text``, and the graph of the sentence where there is one; ``path`` is that of the graphs.

    The ids of graphs ascend. Raises FormatError for a graph without a line.
    """
    waiting = iter(graphs)
    graph = next(waiting, None)
    lines = 0
    for number, line in enumerate(read_lines(text)):
        lines = number + 1
        line = line.removesuffix(b"\r")
        if graph is None or graph.sentence != number:
            yield line, None
            continue
        yield line, graph
        graph = next(waiting, None)
    if graph is not None:
        problem = f"has a graph of sentence {graph.sentence} but {text} has only {counted(lines, 'line')}"
        raise FormatError(path, f"{problem} (ids begin at 0)", line=graph.line)


def format_graph(graph: PhraseGraph) -> bytes:
    """The text of a graph in the form that it was read from."""
    return format_extended_graph(graph) if graph.head else format_hypergraph(graph)


def _parse(blocks: Iterator[bytes], features: GraphFeatures, path: str, sentence: int) -> Iterator[PhraseGraph]:
    first = next(blocks, b"")
    if not first:
        raise FormatError(path, f"is empty; {_EXPECTED}")
    blocks = itertools.chain([first], blocks)
    if first.startswith((HEADER, SENTENCE)):
        graphs = read_hypergraphs(blocks, features, path=path, first=sentence)
    elif BEGINNING.match(first):
        graphs = read_extended_graphs(blocks, features, path=path)
    else:
        raise FormatError(path, _EXPECTED, line=1)
    for graph in graphs:
        if graph.longest_phrase > _MOST_WORDS:
            problem = f"sentence {graph.sentence} has a phrase of {graph.longest_phrase:,} words; is the file damaged?"
            raise FormatError(path, problem, line=graph.line)
        yield graph
