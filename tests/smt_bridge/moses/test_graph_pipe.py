"""Search graphs that come through a pipe, in whatever pieces."""

from __future__ import annotations

import pytest

from smt_bridge.moses import graph_pipe
from smt_bridge.moses.graph_pipe import GraphCutter


def graph(sentence: int, *more: str) -> bytes:
    """Its first line, and others."""
    lines = [f"{sentence} hyp=0 stack=0 forward=1 fscore=0", *(f"{sentence} {line}" for line in more)]
    return "".join(f"{line}\n" for line in lines).encode()


GRAPHS = [graph(0, "hyp=1", 'out="3 hyp=0 stack=0"'), graph(1), graph(3, "hyp=1"), graph(12, "hyp=1 é")]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_each_sentence_has_its_own(size: int) -> None:
    cutter, text = GraphCutter(), b"garbage\n" + b"".join(GRAPHS)
    for begin in range(0, len(text), size):
        cutter.add(text[begin : begin + size])
    assert [cutter.take(sentence) for sentence in (0, 1, 2, 3, 12)] == [*GRAPHS[:2], b"", *GRAPHS[2:]]
    assert cutter.take(13) == b""


def test_one_is_given_while_the_next_one_comes() -> None:
    cutter = GraphCutter()
    cutter.add(GRAPHS[0] + GRAPHS[1][:9])
    assert cutter.take(0) == GRAPHS[0]
    cutter.add(GRAPHS[1][9:])
    assert cutter.take(1) == GRAPHS[1]


def test_what_is_too_large_is_forgotten_and_the_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_pipe, "MOST_BYTES", 200)
    cutter, large = GraphCutter(), graph(1, *["hyp=1"] * 1000)
    for begin in range(0, len(large), 50):
        cutter.add(large[begin : begin + 50])
        assert sum(map(len, cutter._graphs.values())) + len(cutter._rest) <= 300
    cutter.add(GRAPHS[2])
    assert (cutter.take(1), cutter.take(3)) == (None, GRAPHS[2])


def test_a_graph_may_have_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph_pipe.MOST_BYTES == 64 << 20  # as docs/hybrid.md says
    monkeypatch.setattr(graph_pipe, "MOST_BYTES", 200)
    for size in (200, 201):
        cutter = GraphCutter()
        cutter.add(GRAPHS[1].ljust(size - 1, b"x") + b"\n")
        assert (cutter.take(1) is None) == (size == 201)


def test_a_line_without_end_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_pipe, "MOST_BYTES", 200)
    cutter = GraphCutter()
    for _ in range(100):
        cutter.add(b"x" * 50)
        assert len(cutter._rest) <= 250
    cutter.add(b"\n" + GRAPHS[1])
    assert cutter.take(1) == GRAPHS[1]


def test_those_of_sentences_that_nobody_asks_for_are_forgotten() -> None:
    cutter = GraphCutter()
    cutter.add(b"".join(GRAPHS))
    assert cutter.take(3) == GRAPHS[2]
    assert list(cutter._graphs) == [12]
