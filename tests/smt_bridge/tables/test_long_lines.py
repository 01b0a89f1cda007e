"""Lines made to be slow: what reads them takes time in proportion to their length."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from smt_bridge.commands.main import main
from smt_bridge.errors import FormatError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.strings import best_strings
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.checks import sampled_pair
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.tables.table import cut_at_sources, read_windows, split_window
from tests.fakes import LengthPairScorer
from tests.small_graphs import random_graph, write_ini

SIZE = 300_000


def entry(line: bytes) -> None:
    parse_entry(line, path="list", number=1)


def alignment(field: bytes) -> None:
    sampled_pair("a b", parse_entry(b"0 ||| a ||| A= 1 ||| 0 ||| " + field, path="list", number=1))


@pytest.fixture
def table(tmp_path: Path) -> Callable[[bytes], None]:
    def read(line: bytes) -> None:
        (tmp_path / "table").write_bytes(b"a ||| b ||| 1\n" + line + b"\n")
        for window in read_windows(str(tmp_path / "table")):
            split_window(window)

    return read


def quickly(work: Callable[[bytes], None], line: bytes) -> None:
    """What took the square of the length took minutes, or hours."""
    begin = time.process_time()
    with contextlib.suppress(FormatError, ValueError):
        work(line)
    assert time.process_time() - begin < 10


def test_labels() -> None:
    quickly(entry, b"0 ||| a ||| " + b";a" * SIZE + b" ||| 0")


def test_alignments() -> None:
    quickly(alignment, b"1-" + b"1" * SIZE + b"x")
    quickly(alignment, b"0-0 " * SIZE + b"x")


def test_scores(table: Callable[[bytes], None]) -> None:
    quickly(table, b"a ||| b ||| " + b"1" * SIZE + b"x")
    quickly(table, b"a ||| [" + b"][" * SIZE + b"x ||| 1")


@pytest.mark.parametrize("block", [1 << 20, 7_654_321])
def test_long_lines_make_small_windows(block: int) -> None:
    """However they come; 20,000 lines of 16 MiB would not fit into any memory."""
    lines = [b"a ||| " + bytes([98 + number % 20]) * (5 << 20) for number in range(40)]
    content = b"".join(line + b"\n" for line in lines)
    ends = list(range(block, len(content), block))
    cuts = [0, *(content.rfind(b"\n", 0, end) + 1 for end in ends), len(content)]
    blocks = [content[first:last] for first, last in pairwise(cuts) if first < last]
    windows = list(cut_at_sources(blocks, size=20_000))
    assert [(first, part.count(b"\n") + 1) for first, part in windows] == [(1, 12), (13, 12), (25, 12), (37, 4)]
    assert b"".join(part + b"\n" for _, part in windows) == content


def test_a_line_above_the_limit_is_named_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind many blocks, whose lines are counted."""
    monkeypatch.setenv("HYBRIDMT_LINE_LIMIT", "1")
    (tmp_path / "table").write_bytes(b"a ||| b ||| 1\n" * 30_000 + b"a" * (2 << 20) + b"\n")
    with pytest.raises(InputError) as caught:
        list(read_windows(str(tmp_path / "table")))
    assert caught.value.line == 30_001


LONG = 5_000_000
WORD = b"x" * LONG
ROW = (b"a ", b" b ", b" 0.5 0.25 ", b" 0-0")
ENTRY = (b"0 ", b" un chat ", b" LM0= -2 ", b" -2 ", b" 0-0")


def with_field(row: tuple[bytes, ...], place: int, field: bytes) -> bytes:
    return b"|||".join([*row[:place], b" " + field + b" ", *row[place + 1 :]])


@pytest.mark.parametrize(("place", "field"), [(0, WORD), (1, WORD), (3, b"0-0 " * (LONG // 4))])
def test_a_table_with_lines_of_5_million_characters_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, field: bytes
) -> None:
    monkeypatch.setattr("smt_bridge.tables.rescore.open_model", lambda spec, options: LengthPairScorer(0.5))
    (tmp_path / "table").write_bytes(b"|||".join(ROW) + b"\n" + with_field(ROW, place, field) + b"\n")
    command = ["rescore-table", str(tmp_path / "table"), "--scorer", "x", "--jobs", "1", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "new")]) == 0
    short, long = (tmp_path / "new").read_bytes().splitlines()
    number = short.split(b"|||")[2].split()[2]
    assert long.replace(b" 0.25 " + number, b" 0.25", 1) == with_field(ROW, place, field)


@pytest.mark.parametrize(
    ("place", "field"),
    [(1, WORD), (2, b"LM0= -2 " + (b"a_" + b"b" * 994 + b"= 1 ") * (LONG // 1000)), (4, b"0-0 " * (LONG // 4))],
    ids=["word", "features", "alignment"],
)
def test_a_list_with_lines_of_5_million_characters_is_scored_and_reranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, field: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    long = with_field(ENTRY, place, field)
    Path("list").write_bytes(b"0 ||| un chien ||| LM0= -3 ||| -3\n" + long + b"\n")
    Path("source").write_text("a cat\n")
    Path("weights").write_text("LM0= 1\nWordCount0= 0\n")
    added = ["--source", "source", "--feature", "wordcount", "--jobs", "1", "--quiet", "--output", "rich"]
    assert main(["add-features", "--nbest", "list", *added]) == 0
    count = b" WordCount0= 1" if place == 1 else b" WordCount0= 2"
    _, line = Path("rich").read_bytes().splitlines()
    assert line.replace(count, b"", 1) == long
    assert main(["rerank", "--nbest", "rich", "--weights", "weights", "--output", "best"]) == 0
    assert Path("best").read_bytes() == (WORD if place == 1 else b"un chat") + b"\n"


def test_weights(tmp_path: Path) -> None:
    def read(line: bytes) -> None:
        (tmp_path / "weights").write_bytes(line)
        read_weights(str(tmp_path / "weights"))

    quickly(read, b"A= " + b"1" * SIZE + b"x\n")


def test_a_label_may_follow_a_semicolon() -> None:
    assert parse_entry(b"0 ||| a ||| A=1; B=2; ||| 0", path="list", number=1).features == {"A": (1.0,), "B": (2.0,)}


@pytest.mark.parametrize("middle", [b'" out="', b"|", b"a=", b" ", b'"', b"1", b"a ", b"core=("])
def test_search_graphs(tmp_path: Path, middle: bytes) -> None:
    features = GraphFeatures(write_ini(tmp_path))

    def read(line: bytes) -> None:
        (tmp_path / "graph").write_bytes(line)
        for graph in read_graphs(str(tmp_path / "graph"), features):
            best_strings(graph, features.scores(graph), 2)

    text = random_graph(1).text().encode()
    quickly(read, text.replace(b"wort|", b"wort|" + middle * SIZE, 1))
    quickly(read, text.replace(b'" out=', middle * SIZE + b'" out=', 1))
    quickly(read, text.replace(b"0 hyp", middle * SIZE + b"0 hyp", 1))
