"""Tables of hierarchical and syntax rules: which words models read, what passes through, what is refused and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.errors import FormatError
from smt_bridge.tables.lines import (
    rule_symbols,
    rule_words,
)
from smt_bridge.tables.table import Window, append_scores, phrases_of, read_windows, split_window

NONE = "has no label such as [X] at the end of a side, as the rules in the first lines have"
ONE = "has one label, where Moses wants the two of a non-terminal, such as [X][X]"
RULE = b"der [X][X] Hund [X] ||| the [X][X] dog [NP] ||| 0.5 0.25 ||| 0-0 1-1 2-2 ||| 4 3 2 ||| |||"


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        (b" das Haus [X] ", b"das Haus"),
        (b"[X][X] de [X][X] [X]", b"de"),
        (b"\tkauft  [X][NP-SB] ,  [X][$,] [VP/NP+S-HD]", b"kauft ,"),
        (b"[X][X] [X]", b""),
        (b"[X]", b""),
        (b"<s> [X]", b""),
        (b"[X][S] </s> [S]", b""),
        (b"a [ b ] [c d] ]e[ [X]", b"a [ b ] [c d] ]e["),
        (b"das|ART [X][X] [X]", b"das|ART"),
        (b"\xa0 \xff\xe2\x80\xa8 [X]", b"\xa0 \xff\xe2\x80\xa8"),
    ],
)
def test_words_are_what_stands_between_labels(phrase: bytes, words: bytes) -> None:
    assert rule_words(phrase) == words


@pytest.mark.parametrize(
    ("phrase", "problem"),
    [
        (b"das Haus", NONE),
        (b"", NONE),
        (b"  ", NONE),
        (b"a [X][X]", NONE),
        (b"a [b] c [X]", f"`[b]` {ONE}"),
        (b"[] [X]", f"`[]` {ONE}"),
        (b"[%b] [X]" % (b"b" * 90), f"`[{'b' * 39}` {ONE}"),
    ],
)
def test_what_moses_would_not_read_is_refused(phrase: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        rule_symbols(phrase)


_WORD = st.binary(min_size=1, max_size=6).filter(
    lambda word: not set(word) & set(b" \t\n|[]") and word not in (b"<s>", b"</s>")
)
_LABEL = st.sampled_from([b"X", b"NP-SB", b"$,", b"VP+NP", b"S/NP", b"``", b"-LRB-"])
_GAP = st.tuples(_LABEL, _LABEL).map(lambda labels: b"[%b][%b]" % labels)
_SIDE = st.tuples(st.lists(_WORD | _GAP, max_size=6), _LABEL)
_BLANKS = st.sampled_from([b" ", b"  ", b"\t"])


@given(_SIDE, _BLANKS)
def test_any_side_of_words_and_gaps(side: tuple[list[bytes], bytes], blanks: bytes) -> None:
    symbols, label = side
    phrase = blanks.join([*symbols, b"[%b]" % label])
    expected = [None if symbol.startswith(b"[") else symbol for symbol in symbols]
    assert rule_symbols(phrase) == expected
    assert rule_words(phrase) == b" ".join(symbol for symbol in expected if symbol is not None)


@given(st.lists(st.tuples(_SIDE, _SIDE), min_size=1, max_size=10), st.sampled_from([b"\n", b"\r\n"]))
def test_a_table_passes_but_for_the_new_scores(rules: list[tuple[tuple[list[bytes], bytes], ...]], end: bytes) -> None:
    def table(scores: bytes) -> bytes:
        sides = [[b" ".join([*symbols, b"[%b]" % label]) for symbols, label in rule] for rule in rules]
        return b"".join(b"%b ||| %b ||| %b ||| 0-0%b" % (*pair, scores, end) for pair in sides)

    window = Window("t", 7, 2, table(b"0.5 1e-05")[:-1], rules=True)  # a byte order mark is a mark in line 1 only
    columns = split_window(window)
    assert append_scores(columns, [b"0.25"] * len(rules)) == table(b"0.5 1e-05 0.25")
    for side, phrases in enumerate(zip(*phrases_of(window, columns), strict=True)):
        expected = [[symbol for symbol in rule[side][0] if symbol[:1] != b"["] for rule in rules]
        assert list(phrases) == [b" ".join(words) for words in expected]


def test_a_table_is_one_of_rules_by_its_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(RULE + b"\n" + RULE)
    (window,) = read_windows(str(path))
    assert (window.rules, window.scores) == (True, 2)
    for labelled in (99, 100):
        path.write_bytes(b"a [X] ||| b [X] ||| 1\n" * labelled + b"a ||| b ||| 1\n" * 2)
        assert next(read_windows(str(path))).rules == (labelled == 100)
    path.write_bytes(b"a [X] b ||| c [X] ||| 1\na ||| [X] ||| 1\n[X] ||| [X] ||| 1\n")
    (window,) = read_windows(str(path))
    assert not window.rules
    assert [target for _, target in phrases_of(window, split_window(window))] == [b" c [X] ", b" [X] ", b" [X] "]


def test_a_line_that_is_no_rule_is_named() -> None:
    lines = [RULE, b"das Haus ||| the house [X] ||| 1 1 |||"]
    window = Window("t", 11, 2, b"\n".join(lines), rules=True)
    with pytest.raises(FormatError, match="t:12: has no label"):
        phrases_of(window, split_window(window))
