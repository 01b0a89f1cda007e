r"""Search graphs as a running ``moses -output-search-graph-extended`` writes them to a pipe, cut into sentences.

A sentence's graph begins with the line ``ID hyp=0 stack=0 …`` (``graphs/reading.py`` says what its lines are) and
ends where the next one begins. What is too large is forgotten as it comes.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_BYTES = 1 << 26
"""Of a sentence's graph: some 400,000 arcs, of which reading takes seconds."""

_BEGINNING = b" hyp=0 stack=0"
_DIGITS = 15  # of an id, at most


class GraphCutter:
    """Takes what comes through the pipe, and gives each sentence's part of it."""

    def __init__(self) -> None:
        self._graphs: dict[int, bytearray] = {}
        self._too_large: set[int] = set()
        self._sentence: int | None = None  # whose lines come now
        self._rest = bytearray()  # of a line that is not complete

    def add(self, part: bytes) -> None:
        """Go on with these bytes."""
        self._rest += part
        end = self._rest.rfind(b"\n") + 1
        if not end and len(self._rest) <= MOST_BYTES:
            return
        lines = bytes(self._rest[: end or None])
        del self._rest[: end or None]
        done = 0
        for begin, sentence in beginnings(lines):
            self._append(lines[done:begin])
            self._sentence, done = sentence, begin
        self._append(lines[done:])

    def _append(self, lines: bytes) -> None:
        if self._sentence is None or self._sentence in self._too_large:
            return
        graph = self._graphs.setdefault(self._sentence, bytearray())
        graph += lines
        if len(graph) > MOST_BYTES:
            self._too_large.add(self._sentence)
            del self._graphs[self._sentence]

    def take(self, sentence: int) -> bytes | None:
        """The graph of this sentence, which is complete, b"" where there is none, None where it was too large.

        Those of earlier sentences are forgotten.
        """
        graph = None if sentence in self._too_large else bytes(self._graphs.get(sentence, b""))
        self._graphs = {key: lines for key, lines in self._graphs.items() if key > sentence}
        self._too_large = {key for key in self._too_large if key > sentence}
        return graph


def beginnings(lines: bytes) -> Iterator[tuple[int, int]]:
    """Where graphs begin in these lines, and of which sentences."""
    place = lines.find(_BEGINNING)
    while place >= 0:
        begin = lines.rfind(b"\n", 0, place) + 1
        if place - begin <= _DIGITS and lines[begin:place].isdigit():
            yield begin, int(lines[begin:place])
        place = lines.find(_BEGINNING, place + 1)
