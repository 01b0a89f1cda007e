"""Phrase tables: what passes through, what is mended, what is refused and where."""

from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smt_bridge.errors import FormatError
from smt_bridge.tables.lines import Beginning
from smt_bridge.tables.table import (
    Window,
    append_scores,
    cut_at_sources,
    read_windows,
    split_window,
)

LINE = b"das Haus ||| the house ||| 0.5 0.25 ||| 0-0 1-1 ||| 2 4 2 ||| |||"


STOPS = "Moses would stop here"
SHIFTED = "not a plain number (an unescaped | in a phrase shifts the fields)"
EXPECTED = "expected `source ||| target ||| scores`, perhaps with more fields"


def write(path: Path, *lines: bytes) -> str:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def through(*lines: bytes, added: bytes = b"0.125", scores: int = 2) -> list[bytes]:
    content = append_scores(split_window(Window("table", 1, scores, b"\n".join(lines))), [added] * len(lines))
    assert content.endswith(b"\n")
    return content[:-1].split(b"\n")


def refusal(*lines: bytes, scores: int = 2) -> str:
    with pytest.raises(FormatError) as caught:
        split_window(Window("table", 11, scores, b"\n".join(lines)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a ||| b ||| 1 2", b"a ||| b ||| 1 2 .5"),
        (b"a ||| b ||| 1 2 ", b"a ||| b ||| 1 2 .5 "),
        (b"a ||| b ||| 1 2\r", b"a ||| b ||| 1 2 .5\r"),
        (b"a ||| b ||| 1 2 ||| 0-0\r", b"a ||| b ||| 1 2 .5 ||| 0-0\r"),
        (b"a|||b|||1 2|||0-0", b"a|||b||| 1 2 .5 |||0-0"),
        (b"a ||| b ||| 1  2 ||| 0-0", b"a ||| b ||| 1 2 .5 ||| 0-0"),
        (b"a ||| b |||\t1\t2\t||| 0-0", b"a ||| b ||| 1 2 .5 ||| 0-0"),
        (b"a ||| b ||| +1.50E-02 .5 |||", b"a ||| b ||| +1.50E-02 .5 .5 |||"),
        (b"a |||  ||| 1 2 |||  ||| 1", b"a |||  ||| 1 2 .5 |||  ||| 1"),
        (b"\xa0\xff\x0b ||| \xe2\x80\xa8\r\x1c ||| 1 2 ||| \x00",
         b"\xa0\xff\x0b ||| \xe2\x80\xa8\r\x1c ||| 1 2 .5 ||| \x00"),
    ],
)  # fmt: skip
def test_line_keeps_all_but_blanks_between_scores(line: bytes, expected: bytes) -> None:
    assert through(line, added=b".5") == [expected]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", f"the line is blank, {STOPS}; {EXPECTED}"),
        (b" \t\r", f"the line is blank, {STOPS}; {EXPECTED}"),
        (b"a ||| b", f"has 2 of at least 3 fields, {STOPS}; {EXPECTED}"),
        (b"a ||| b ||| 1 ||| 0-0", "has 1 score, but the first line has 2; Moses needs as many in every line"),
        (b"a ||| b ||| 1 2 3", "has 3 scores, but the first line has 2; Moses needs as many in every line"),
        (b"a ||| b ||| ||| 0-0", f"has no scores; {EXPECTED}"),
        (b"a ||| b ||| 1 nan |||", f"score 2 is `nan`, {SHIFTED}; {STOPS}"),
        (b"a ||| b ||| 1 0,5 |||", f"score 2 is `0,5`, {SHIFTED}; {STOPS}"),
        (b"a ||| b ||| 1 1_0 |||", f"score 2 is `1_0`, {SHIFTED}; {STOPS}"),
        (b"a ||| b ||| 1e 1 |||", f"score 1 is `1e`, {SHIFTED}; {STOPS}"),
        (b"a ||| b ||| 1 \xff%b |||" % (b"x" * 90), f"score 2 is `\\xff{'x' * 39}`, {SHIFTED}; {STOPS}"),
        (b"a ||| b ||| 1 1e999 |||", "score 2 is `1e999`, which is too large"),
        (b"a ||| b ||| -0.5 1 |||",
         "score 1 is `-0.5`, but must not be negative: scores are probabilities, of which Moses takes the logarithm"),
    ],
)  # fmt: skip
def test_malformed_line_is_refused_with_its_number(line: bytes, problem: str) -> None:
    assert refusal(LINE, LINE, line, LINE) == f"table:13: {problem}"


def test_bracketed_words_are_not_rules() -> None:
    line = b"[ a ] a[b][c] ||| [x] y ||| 1 2 |||"
    assert through(line)[0].startswith(line[:-4])


def test_first_line_sets_the_number_of_scores(tmp_path: Path) -> None:
    (window,) = read_windows(write(tmp_path / "t", LINE, LINE))
    assert (window.first, window.scores, window.lines) == (1, 2, [LINE, LINE])


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (b"[X] ||| a [X,1] ||| b [X,1] ||| p=1\n",
         ":1: this is a Hiero grammar (`[X] ||| ...`); write it as Moses' rules: source ||| target ||| scores"),
        (b"[NP [DT a] [NN]] ||| x [X][NN] [X] ||| 1\n",
         ":1: these are rules of tree fragments (`[NP [DT the] [NN]]`), which are not read"),
        (b"1\n", f":1: has 1 of at least 3 fields, {STOPS}; {EXPECTED}"),
        (b"", f": the file is empty; {EXPECTED}"),
    ],
)  # fmt: skip
def test_other_kinds_of_tables_are_refused(tmp_path: Path, first: bytes, problem: str) -> None:
    (tmp_path / "t").write_bytes(first)
    with pytest.raises(FormatError) as caught:
        list(read_windows(str(tmp_path / "t")))
    assert str(caught.value) == f"{tmp_path / 't'}{problem}"


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 5)), min_size=1), st.integers(1, 7))
def test_windows_end_where_the_source_changes(groups: list[tuple[bytes, int]], size: int) -> None:
    lines = [b"%b ||| x ||| 1" % source for source, repeats in groups for _ in range(repeats)]
    blocks = [b"\n".join([*part, b""]) for part in (lines[:3], lines[3:]) if part]
    windows = [content.split(b"\n") for _, content in cut_at_sources(blocks, size=size)]
    assert [line for window in windows for line in window] == lines
    for window, following in pairwise(windows):
        assert window[-1] != following[0]
        assert len(window) >= size
    longest = max(len(list(group)) for _, group in groupby(lines))
    assert max(map(len, windows)) < size + longest


def test_endless_source_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.tables.table._LARGEST_WINDOW", 10)
    windows = cut_at_sources([b"a ||| b ||| 1\n" * 25], size=4)
    assert [content.count(b"\n") + 1 for _, content in windows] == [10, 10, 5]


_PHRASE = st.binary(max_size=12).filter(lambda text: b"|" not in text and b"\n" not in text and b"]" not in text)
_SCORE = st.floats(0.0, 1e30).map(lambda number: f"{number:.6g}".encode()) | st.sampled_from(
    [b".5", b"+1", b"1E-5", b"0"]
)
_ANY_FIELD = st.text(alphabet="a |[]\0\r\t\xe9", max_size=6).map(str.encode)
_ANY_SCORES = st.sampled_from([b" 1 2 ", b" .5 1e-05 ", b" 1  2 ", b"1 2", b" 1 2\r", b" 1 x ", b"", b" 1 2 3 "])
_ANY_LINE = st.one_of(
    st.just(b""),
    st.lists(_ANY_FIELD, max_size=6).map(b"|||".join),
    st.tuples(_ANY_FIELD, _ANY_FIELD, _ANY_SCORES, _ANY_FIELD).map(b"|||".join),
    *[st.tuples(_ANY_FIELD, _ANY_FIELD, st.just(b" 1 2 "), _ANY_FIELD).map(b"|||".join)] * 6,
)
_TAIL = st.just(b"") | st.binary(max_size=20).filter(lambda text: b"\n" not in text).map(lambda text: b"|||" + text)


@given(st.lists(st.tuples(_PHRASE, _PHRASE, st.lists(_SCORE, min_size=3, max_size=3), _TAIL), min_size=1, max_size=20))
@settings(max_examples=200)
def test_random_table_is_kept_byte_for_byte(parts: list[tuple[bytes, bytes, list[bytes], bytes]]) -> None:
    def table(added: bytes) -> list[bytes]:
        return [b"%b|||%b||| %b%b %b" % (s, t, b" ".join(n), added, tail) for s, t, n, tail in parts]

    assert through(*table(b""), added=b"0.1 7", scores=3) == table(b" 0.1 7")


@given(st.lists(_ANY_LINE, min_size=1, max_size=12), st.booleans())
@settings(max_examples=300)
@example(lines=[b"a ||| b ||| 1 2 |||", b"a ||| b ||| 1 2 ||||"], rules=False)
@example(lines=[b"a |||||| 1 2 |||||||", b"|||||| 1 2 |||"], rules=False)
@example(lines=[b"a ||||| b ||| 1 2 |||", b"a|||| b ||| 1 2 |||"], rules=False)
@example(lines=[b"a ||| b", b"a ||| b ||| 1 2 ||| ||| |||"], rules=False)
def test_plain_lines_are_what_they_are_when_they_are_mended(lines: list[bytes], rules: bool) -> None:
    window = Window("table", 5, 2, b"\n".join(lines), rules)

    def result() -> object:
        try:
            columns = split_window(window)
        except FormatError as error:
            return str(error)
        numbers = [b"%d .5" % number for number in range(len(lines))]
        return columns.sources, columns.targets, columns.scores, append_scores(columns, numbers)

    found = result()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smt_bridge.tables.table._NUMBER", rb"(?!)")
        assert found == result()


@given(
    st.lists(st.sampled_from([b"", b"a", b"|||x", b"a|||b", b"b|||cccccccccccccccccc", b"\0|||\r"]), min_size=1),
    st.data(),
)
def test_windows_and_their_numbers_do_not_depend_on_blocks(lines: list[bytes], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lines)))))
    blocks = [b"".join(line + b"\n" for line in lines[i:j]) for i, j in pairwise([0, *cuts, len(lines)]) if i < j]
    if data.draw(st.booleans()) and lines[-1]:
        blocks[-1] = blocks[-1].removesuffix(b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smt_bridge.tables.table._LARGEST_BYTES", 50)
        patch.setattr("smt_bridge.tables.table._LARGEST_WINDOW", 9)
        found = list(cut_at_sources(blocks, size=size))
        patch.setattr("smt_bridge.tables.table.table_blocks", lambda *_: blocks)
        patch.setattr("smt_bridge.tables.table.WINDOW", size)
        patch.setattr("smt_bridge.tables.table.check_beginning", lambda *_: Beginning(1, rules=False))
        windows = list(read_windows("table"))
        whole = [b"".join(line + b"\n" for line in lines)]
        assert found == list(cut_at_sources(whole, size=size))
    assert [line for _, content in found for line in content.split(b"\n")] == lines
    assert [(window.first, window.content) for window in windows] == found
    assert [window.first for window in windows] == [
        1 + sum(window.size for window in windows[:place]) for place in range(len(windows))
    ]
