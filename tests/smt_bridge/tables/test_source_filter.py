"""Which lines of a table a text needs: those that a plain search finds, byte for byte, of any kind of table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.errors import FormatError
from smt_bridge.tables import filter as table_filter
from smt_bridge.tables.filter import SourceFilter, SourceText, filter_by_sources

_LINES = st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", b"ab"]), max_size=14).map(b" ".join), max_size=4)
_PHRASE = st.lists(st.sampled_from([b"a", b"b", b"c", b"ab", b"d"]), max_size=13)
_SYMBOLS = st.lists(st.sampled_from([b"a", b"b", b"ab", None]), max_size=6)


def occurs(words: Sequence[bytes], line: bytes) -> bool:
    tokens = line.split()
    return any(tokens[place : place + len(words)] == words for place in range(len(tokens) - len(words) + 1))


def occurs_with_gaps(symbols: Sequence[bytes | None], tokens: Sequence[bytes]) -> bool:
    """By trying every number of words for every gap."""
    if not symbols:
        return True
    if not tokens:
        return False
    if symbols[0] is not None:
        return tokens[0] == symbols[0] and occurs_with_gaps(symbols[1:], tokens[1:])
    return any(occurs_with_gaps(symbols[1:], tokens[width:]) for width in range(1, len(tokens) + 1))


@given(_LINES, _PHRASE)
def test_phrases_are_those_of_a_plain_search(lines: list[bytes], phrase: list[bytes]) -> None:
    text = SourceText(lines)
    expected = bool(phrase) and any(occurs(phrase, line) for line in lines)
    assert text.has_phrase(b" ".join(phrase)) == expected
    assert text.has_phrase(b"\t" + b"  ".join(phrase) + b" ") == expected


@given(_LINES, _SYMBOLS)
def test_rules_are_those_of_a_plain_search(lines: list[bytes], symbols: list[bytes | None]) -> None:
    ends = [[line.split()[place:] for place in range(len(line.split()) + 1)] for line in lines]
    expected = any(occurs_with_gaps(symbols, tokens) for tokens in itertools.chain.from_iterable(ends))
    assert SourceText(lines).has_rule(symbols) == (expected or not symbols)


def test_rules_of_a_glue_grammar_always_occur() -> None:
    text = SourceText([b"a"])
    assert text.has_rule([b"<s>"])
    assert text.has_rule([None, b"</s>"])
    assert not text.has_rule([None, None])
    assert not text.has_phrase(b"<s>")


def filtered(table: bytes, path: Path, text: Sequence[bytes]) -> bytes:
    path.write_bytes(table)
    parts = list(filter_by_sources(str(path), SourceFilter(SourceText(text))))
    assert sum(part.lines for part in parts) == table.count(b"\n") + (not table.endswith(b"\n"))
    assert sum(part.kept for part in parts) == sum(part.content.count(b"\n") for part in parts)
    return b"".join(part.content for part in parts)


@pytest.mark.parametrize(
    ("table", "kept"),
    [
        (b"a b ||| x ||| 1 |||\nb a ||| y ||| 1\n a  b|||z|||2\n", [0, 2]),
        (b"a b ||| 0.1 0.2 0.7\nb ||| 0.1 0.2 0.7\nc ||| 0.5 0.2 0.3", [0, 1]),
        (b"a ||| x ||| c ||| 1 2\r\nc ||| x ||| c ||| 1 2\r\n\t ||| x ||| 1\r\n", [0]),
        (b"[X][X] b [X] ||| x [X] ||| 1\nb [X][X] [X] ||| x [X] ||| 1\n[X][X] [X] ||| x [X] ||| 1\n", [0, 2]),
        (b"<s> [X] ||| <s> [S] ||| 1 |||\n[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1\n", [0, 1]),
        (b"a [X] ||| x ||| 1\na ||| y ||| 1\n[X] ||| x ||| 1\n", [1]),
        (b"\xff ||| x ||| 1\n\xc2\xa0 ||| x ||| 1\na\xc2\xa0b ||| x ||| 1", []),
    ],
)
def test_lines_stay_as_they_are(tmp_path: Path, table: bytes, kept: list[int]) -> None:
    lines = [line + b"\n" for line in table.removesuffix(b"\n").split(b"\n")]
    assert filtered(table, tmp_path / "table", [b"a b"]) == b"".join(lines[place] for place in kept)


FACTORS = (
    ":1: the words of the sources have 2 factors and the words of the text 1; give the text with the factors that"
    " moses.ini has as input-factor of this table"
)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (b"", ": the file is empty; expected a table of Moses, `source ||| ...`"),
        (b"a ||| x\n\nb ||| x\n", ":2: has no |||; expected a table of Moses, `source ||| ...`"),
        (b"a [X] ||| x [X] ||| 1\n" * 100 + b"a ||| x [X] ||| 1\n", ":101: has no label such as [X] at"),
        (b"a [X][X] [X] ||| x [X] ||| 1\na ||| x ||| 1\n", ":2: has no labels such as [X] at the end of both sides"),
        (b"[X] ||| a [X,1] ||| b [X,1] ||| p=1\n", ":1: this is a Hiero grammar (`[X] ||| ...`)"),
        (b"x [X][NN] [X] ||| [NP [DT a] [NN]] ||| 1\n", ":1: these are rules of tree fragments"),
        (b"a|A b|B ||| x ||| 1\nc|C ||| x ||| 1\n", FACTORS),
        (b"<s> [X] ||| <s> [S] ||| 1\na|A b|B c|C [X] ||| x [X] ||| 1\n", FACTORS),
        (b"a [X] ||| x [X] ||| 1\n[the] [X] ||| x [X] ||| 1\n", ":2: `[the]` has one label"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, table: bytes, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        filtered(table, tmp_path / "table", [b"a b c"])
    assert str(caught.value).startswith(f"{tmp_path / 'table'}{problem}")


def test_how_the_table_comes_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = b"".join(b"%b [X] ||| x [X] ||| %d\n" % (b"ab"[number % 2 :][:1], number) for number in range(250))
    whole = filtered(table, tmp_path / "table", [b"a"])

    def line_by_line(path: str) -> Iterator[bytes]:
        yield from Path(path).read_bytes().splitlines(keepends=True)

    monkeypatch.setattr(table_filter, "table_blocks", line_by_line)
    assert filtered(table, tmp_path / "table", [b"a"]) == whole
    assert whole.count(b"\n") == 125
    with pytest.raises(FormatError, match="table:251: has no label"):
        filtered(table + b"a ||| x ||| 1\n", tmp_path / "table", [b"a"])


@pytest.mark.parametrize("table", [b"a|A ||| x ||| 1\n", b"<s> [X] ||| <s> [S] ||| 1\n"])
def test_tables_of_few_words_are_taken_with_any_text(tmp_path: Path, table: bytes) -> None:
    assert filtered(table, tmp_path / "table", [b"a|A b|B c|C"]) == table
    with pytest.raises(FormatError, match="the sources have 1 factor and the words of the text 2; give the text with"):
        filtered(b"a b c ||| x ||| 1\n", tmp_path / "table", [b"a|A b|B c|C"])
