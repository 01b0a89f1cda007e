"""N-best lines of every known producer: understood, and written back byte for byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import (
    NbestEntry,
    NbestList,
    check_new_names,
    format_entry,
    runs_of_sentence,
    with_columns,
)
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.moses import parse_entry, phrase_pairs
from smt_bridge.nbest.posteriors import posteriors_of

MODERN = b"0 ||| the house  ||| Distortion0= 0 LM0= -8.17 TM0= -1.5 2e-3 ||| -0.18"


ID = "expected 'id ||| text ...' with a whole number from 0 as id, not '{}'"
NOT_FINITE = "is not a finite number; tuners and decoders cannot use nan or inf"
NO_LABEL = "in the feature field is neither a label (Name=) nor a number"


def parse(line: bytes) -> NbestEntry:
    return parse_entry(line, path="list", number=7)


@pytest.mark.parametrize(
    ("line", "text", "features", "total"),
    [
        (MODERN, b"the house", {"Distortion0": (0.0,), "LM0": (-8.17,), "TM0": (-1.5, 0.002)}, -0.18),
        (b"3 ||| a ||| d: 0 -7.6 lm: -41 w: -9 ||| -3", b"a", {"d": (0.0, -7.6), "lm": (-41.0,), "w": (-9.0,)}, -3.0),
        (b"0||| a b||| lm: -4 ||| -3", b"a b", {"lm": (-4.0,)}, -3.0),
        (b"2 ||| ||| LM0= -1 ||| 0", b"", {"LM0": (-1.0,)}, 0.0),
        (b"2 |||  ||| LM0= -1 ||| 0", b"", {"LM0": (-1.0,)}, 0.0),
        (b"1 ||| a ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0= -3 F1=-4 ||| -7", b"a", {"F0": (-3.0,), "F1": (-4.0,)},
         -7.0),
        (b"1 ||| a ||| LM0= -1 ||| -2 ||| 0-1=0-1 2=2 ||| 0-0 ", b"a", {"LM0": (-1.0,)}, -2.0),
        (b"1 ||| a ||| tm_pt_0=-15.8 lm_0=-29.4 ||| -3", b"a", {"tm_pt_0": (-15.8,), "lm_0": (-29.4,)}, -3.0),
        (b"1 ||| a ||| A=1;B=2; ||| -3".replace(b";B", b"; B"), b"a", {"A": (1.0,), "B": (2.0,)}, -3.0),
        (b"1 ||| a ||| 1 2 3 ||| -3", b"a", {"Unlabelled0": (1.0, 2.0, 3.0)}, -3.0),
        (b"1 ||| a ||| 4.5", b"a", {}, 4.5),
        (b"1 ||| a", b"a", {}, None),
        (b"1 ||| a\tb \xa0 c\x85 ||| LM0= -1 ||| -2\r", b"a\tb \xa0 c\x85", {"LM0": (-1.0,)}, -2.0),
        (b"1 ||| a ||| wt_=~x= 1 LM0= -2 ||| 0", b"a", {"wt_=~x": (1.0,), "LM0": (-2.0,)}, 0.0),
    ],
)  # fmt: skip
def test_line_of_known_producer(
    line: bytes, text: bytes, features: dict[str, tuple[float, ...]], total: float | None
) -> None:
    entry = parse(line)
    assert (entry.hypothesis, entry.features, entry.total) == (text, features, total)
    assert format_entry(entry) == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((line, ID.format(line)) for line in ("", "0 the house", "1234567890123456", "9" * 40)),
        ("9" * 50, ID.format("9" * 40)),
        ("x ||| a ||| LM0= 1 ||| 1", ID.format("x")),
        ("-1 ||| a ||| LM0= 1 ||| 1", ID.format("-1")),
        ("0", "expected 'id ||| text ||| features ||| total' but there is no '|||'"),
        ("0 ||| a ||| LM0= nan ||| 1", f"feature LM0 {NOT_FINITE}"),
        ("0 ||| a ||| LM0= -inf ||| 1", f"feature LM0 {NOT_FINITE}"),
        ("0 ||| a ||| LM0= 1 -1e39 ||| 1", "feature LM0 is -1e+39, but Moses' tools read numbers up to 3.4e+38 only"),
        ("0 ||| a ||| LM0= 1 ||| 1 -1e39", "the total is not a finite number up to 3.4e+38"),
        ("0 ||| a ||| LM0= 1_0 ||| 1", f"'1_0' {NO_LABEL}"),
        ("0 ||| a ||| LM0= -1 word ||| 1", f"'word' {NO_LABEL}"),
        ("0 ||| a ||| LM0=word -1 ||| 1", f"'LM0=word' {NO_LABEL}"),
        ("0 ||| a ||| LM0= TM0= 1 ||| 1", "feature LM0 has no value"),
    ],
)
def test_malformed_line_names_file_line_and_cause(line: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(line.encode())
    assert str(caught.value) == f"list:7: {said}"
    assert parse(b"9" * 15 + b" ||| a").sentence == 10**15 - 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a b", "has no marks of the phrases used, such as |0-1|; decode with -report-segmentation, or leave out phr"),
        ("a |0-0| b", "has words behind the last mark of a phrase"),
        ("a |0-2|", "the mark |0-2| is not of a source of 2 words; is it another source?"),
    ],
)
def test_without_a_mark_behind_every_phrase_there_are_no_pairs(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        phrase_pairs("x y", parse(f"0 ||| {text}".encode()))


def test_posteriors_need_totals() -> None:
    group = NbestList(0, [parse(b"0 ||| a ||| A= 1")])
    said = "has no total, which posteriors are made of; expected id ||| words ||| features ||| total"
    with pytest.raises(FormatError, match=f"^list:7: {re.escape(said)}$"):
        posteriors_of(group, path="list", scale=1.0, order=2)


def test_added_columns_leave_all_else(shared: Path) -> None:
    for line in read_lines(str(shared / "moses/en-fr/val.first20.nbest10.with-alignment.gz")):
        new = format_entry(with_columns(parse(line), ["NMT0", "WordCount0"], [-3.12345678, -0.0]))
        assert b" NMT0= -3.123457 WordCount0= 0 |||" in new
        assert new.replace(b"NMT0= -3.123457 WordCount0= 0 ", b"") == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (MODERN, MODERN.replace(b" ||| -0.18", b" NMT0= -1.5 ||| -0.18")),
        (b"2 ||| ||| LM0= -1 ||| 0\r", b"2 ||| ||| LM0= -1 NMT0= -1.5 ||| 0\r"),
        (b"2 ||| a |||LM0= -1||| 0", b"2 ||| a |||LM0= -1 NMT0= -1.5||| 0"),
        (b"2 ||| a ||| 1 2 ||| 0", b"2 ||| a ||| Unlabelled0= 1 2 NMT0= -1.5 ||| 0"),
        (b"2 ||| a ||| Unlabelled0= 1 2 A= 1 ||| 0", b"2 ||| a ||| Unlabelled0= 1 2 A= 1 NMT0= -1.5 ||| 0"),
        (b"2 ||| a ||| 0", b"2 ||| a ||| NMT0= -1.5 ||| 0"),
        (b"2 ||| a ||| ||| 0", b"2 ||| a ||| NMT0= -1.5 ||| 0"),
        (b"2 ||| a", b"2 ||| a ||| NMT0= -1.5"),
        (b"2 ||| a ||| LM0= -1\r", b"2 ||| a ||| LM0= -1 NMT0= -1.5\r"),
    ],
)
def test_column_goes_to_the_end_of_the_feature_field(line: bytes, expected: bytes) -> None:
    entry = with_columns(parse(line), ["NMT0"], [-1.5])
    assert format_entry(entry) == expected
    assert parse(expected).features == entry.features


@pytest.mark.parametrize("line", [MODERN, MODERN + b" ||| 0-0 ", b"1 ||| a ||| LM0= -1", b"1 ||| a"])
def test_new_total_is_read_back(line: bytes) -> None:
    entry = parse(line)._replace(total=-12.5)
    again = parse(format_entry(entry))
    assert again.total == -12.5
    assert again.features == parse(line).features
    assert format_entry(entry).split(b" ||| ")[4:] == line.split(b" ||| ")[4:]


def test_real_list_is_written_back_byte_for_byte(shared: Path) -> None:
    path = str(shared / "moses/en-fr/val.first20.nbest10.with-alignment.gz")
    entries = list(read_entries(path))
    assert [format_entry(entry) for entry in entries] == list(read_lines(path))
    assert [group.sentence for group in runs_of_sentence(entries)] == list(range(20))


@pytest.mark.parametrize("name", ["NMT_0", "0NMT", "", "NMT=", "NMÉ"])
def test_name_that_moses_would_misread_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="feature name") as caught:
        check_new_names(["A", name])
    letters = "letters and digits, beginning with a letter (with '_' Moses' tools take it for a sparse feature)"
    assert str(caught.value) == f"feature name '{name}' must be {letters}"
    with pytest.raises(ValueError, match=r"^feature name 'A' is given twice; name the columns apart$"):
        check_new_names(["B", "B", "A", "A"])


WORD = st.text(alphabet="ab|é\u00a0\u2028\x0b", min_size=1, max_size=4).filter(lambda word: "|||" not in word)
NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(
    st.integers(0, 10**6),
    st.lists(WORD.map(lambda word: word.strip("|") or "x"), max_size=5),
    st.dictionaries(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
        st.lists(NUMBER, min_size=1, max_size=3),
        min_size=1,
    ),
)
def test_any_well_formed_line_survives(sentence: int, words: list[str], features: dict[str, list[float]]) -> None:
    columns = " ".join(f"{name}= {' '.join(map(repr, values))}" for name, values in features.items())
    line = f"{sentence} ||| {' '.join(words)} ||| {columns} ||| -1".encode()
    entry = parse(line)
    if "WordScores" not in features:
        assert entry.features == {name: tuple(values) for name, values in features.items()}
    assert entry.sentence == sentence
    assert entry.hypothesis.decode() == " ".join(words)
    assert format_entry(entry) == line


@given(st.binary(max_size=60))
def test_any_bytes_are_kept_or_refused(line: bytes) -> None:
    line = b"0 |||" + line.replace(b"\n", b" ")
    try:
        entry = parse(line)
    except FormatError:
        return
    assert format_entry(entry) == line
