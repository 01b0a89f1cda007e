"""Graphs beside a text that has a line for every sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.formats.phrase_graph import PhraseGraph


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
        problem = f"has a graph of sentence {graph.sentence} but {text} has only {lines} lines"
        raise FormatError(path, f"{problem} (ids begin at 0)", line=graph.line)
