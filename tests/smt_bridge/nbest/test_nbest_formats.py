"""Lists of every tool: known by their first lines, read into the same entries, written back to be read again."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import NbestEntry, format_entry, with_columns
from smt_bridge.nbest.formats import check_format, read_entries
from smt_bridge.nbest.order import ordered_lists

FAIRSEQ = b"""2021-03-02 10:00:00 | INFO | fairseq_cli.generate | loading model(s)
S-7\tdas haus
T-7\tthe house
H-7\t-0.25\tthe house
D-7\t-0.25\tThe house
P-7\t-0.5 -0.1 -0.15
A-7\t0-0 1-1
H-7_1\t-0.5\ta house
S-2\tja
H-2\t-1\t
2021-03-02 10:00:01 | INFO | fairseq_cli.generate | NOTE: hypothesis and token scores are output in base 2
Generate test with beam=5: BLEU4 = 1
"""


def read(tmp_path: Path, content: bytes, format: str = "auto") -> list[NbestEntry]:
    (tmp_path / "list").write_bytes(content)
    return list(read_entries(str(tmp_path / "list"), format=format))


def again(tmp_path: Path, entries: list[NbestEntry]) -> list[NbestEntry]:
    """What is read after a column and a total were added and all was written."""
    new = [with_columns(entry, ["New0"], [-1.5])._replace(total=-9.0) for entry in entries]
    return read(tmp_path, b"".join(format_entry(entry) + b"\n" for entry in new))


def check_round(tmp_path: Path, entries: list[NbestEntry]) -> None:
    """Nothing but the new column and the total is another."""
    for old, new in zip(entries, again(tmp_path, entries), strict=True):
        assert (new.sentence, new.hypothesis, new.total) == (old.sentence, old.hypothesis, -9.0)
        assert new.features == {**old.features, "New0": (-1.5,)}


def test_segmentation_marks_are_no_words_but_stay(tmp_path: Path) -> None:
    lines = (
        b"0 ||| the |0-0| house |1-2| ||| LM0= -1 ||| -2\n"
        b"1 ||| a |0-0,wa=0-0 ,total=-1.5, LM0= -3| house |1-1| ||| LM0= -1 ||| -2 ||| 0-0=0-0 1-2=1\n"
        b"2 ||| x|0-0|y |a|b ||| LM0= -1 ||| -2\n"
    )
    entries = read(tmp_path, lines)
    assert [entry.text for entry in entries] == ["the house", "a house", "x|0-0|y |a|b"]
    assert b"".join(format_entry(entry) + b"\n" for entry in entries) == lines
    check_round(tmp_path, entries)


def test_factors_are_found_and_their_bytes_stay(tmp_path: Path) -> None:
    lines = b"0 ||| the|DT|x house|NN|y ||| LM0= -1 ||| -2\n0 ||| a|DT|x |0-0| house|NN|y |1-1| ||| LM0= -2 ||| -3\n"
    entries = read(tmp_path, lines)
    assert [entry.text for entry in entries] == ["the house", "a house"]
    assert b"".join(format_entry(entry) + b"\n" for entry in entries) == lines
    assert [entry.text for entry in read(tmp_path, lines, "moses")] == ["the|DT|x house|NN|y", "a|DT|x house|NN|y"]


@pytest.mark.parametrize("text", [b"a|b house and more", b"a|b c|d|e f|g", b"a|b || c|d", b"a|b c|"])
def test_text_with_some_bars_has_no_factors(tmp_path: Path, text: bytes) -> None:
    assert read(tmp_path, b"0 ||| " + text + b" ||| LM0= -1 ||| -2\n")[0].hypothesis == text


def test_marian_amun_and_rescored_lists(tmp_path: Path) -> None:
    lines = (
        b"0 ||| the house ||| 0-0 1-1 ||| WordScores= -0.1 -0.2 ||| F0= -1.5 F1= -2 ||| -0.75\n"
        b"1 ||| a ||| F0= -1.5 F1= -2 ||| -0.75 12.5 3\n"
    )
    entries = read(tmp_path, lines)
    assert [entry.features for entry in entries] == [
        {"F0": (-1.5,), "F1": (-2.0,)},
        {"F0": (-1.5,), "F1": (-2.0,), "Rescored0": (12.5, 3.0)},
    ]
    assert [entry.total for entry in entries] == [-0.75, -0.75]
    assert b"".join(format_entry(entry) + b"\n" for entry in entries) == lines
    check_round(tmp_path, entries)


@pytest.mark.parametrize(("number", "score"), [(b"4.50", -4.5), (b"+4.50", -4.5), (b"-4.50", -4.5)])
def test_costs_of_nematus_and_log_probabilities_are_higher_when_better(
    tmp_path: Path, number: bytes, score: float
) -> None:
    entries = read(tmp_path, b"0 ||| the house ||| " + number + b"\n0 ||| ||| 0.0\r\n")
    assert [(entry.text, entry.features["Score0"][0], entry.total) for entry in entries] == [
        ("the house", score, score),
        ("", 0.0, 0.0),
    ]
    assert format_entry(entries[0]) == b"0 ||| the house ||| Score0= -4.50 ||| -4.50"
    check_round(tmp_path, entries)
    both = read(tmp_path, b"0 ||| a ||| -0.0001\n0 ||| b ||| 2\n")  # a cost may be rounded to less than 0
    assert [entry.total for entry in both] == [0.0001, -2.0]
    with pytest.raises(FormatError, match="expected 'id"):
        read(tmp_path, b"0 ||| a ||| LM0= -1 ||| -1 2\n", "scored")
    rewarded = read(tmp_path, b"0 ||| a ||| 0.5\n0 ||| b ||| -2\n")
    assert [entry.total for entry in rewarded] == [0.5, -2.0]


def test_fairseq_is_turned_to_natural_logarithms_and_sorted_by_id(tmp_path: Path) -> None:
    entries = read(tmp_path, FAIRSEQ)
    assert [(entry.sentence, entry.text) for entry in entries] == [(7, "the house"), (7, "a house"), (2, "")]
    assert entries[0].features == {"FairseqNorm0": pytest.approx((-0.25 * log(2),))}
    assert entries[0].total == pytest.approx(-0.25 * log(2))
    check_round(tmp_path, entries)
    (tmp_path / "list").write_bytes(FAIRSEQ)
    with ordered_lists(str(tmp_path / "list")) as ordered:
        assert [(group.sentence, len(group.entries)) for group in ordered.lists] == [(2, 1), (7, 2)]


def test_plain_text_with_ids_and_n_lines_a_sentence(tmp_path: Path) -> None:
    bars = read(tmp_path, b"0 ||| the house\n4 ||| a\n")
    assert [(entry.sentence, entry.text) for entry in bars] == [(0, "the house"), (4, "a")]
    mixed = read(tmp_path, b"0 ||| a ||| 1\n0 ||| b ||| A= 1 ||| -1\n")  # not every line has a score alone
    assert [(entry.features, entry.total) for entry in mixed] == [({}, 1.0), ({"A": (1.0,)}, -1.0)]
    plain = read(tmp_path, b"a b\nc\n\nd\n", "lines:2")
    assert [(entry.sentence, entry.text) for entry in plain] == [(0, "a b"), (0, "c"), (1, ""), (1, "d")]
    check_round(tmp_path, plain)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"", None, "is empty; expected an n-best list"),
        (b"\n\n", 1, "begins with blank lines only; expected an n-best list"),
        (b"the house\n", 1,
         "is no n-best list known by its first lines: expected 'id ||| text ||| ...' with a whole number from 0 as"
         " id, or fairseq's H- lines; for N lines of text a sentence give --nbest-format lines:N"),
        (b"0 ||| a ||| 1\n" * 600 + b"0 ||| a\n", 601, "expected 'id ||| text ||| score' as in the lines before"),
        (b"H-0\t-1\n", 1, "expected 'H-id', the score and the hypothesis between tabs"),
        (b"H-0\t-inf\ta\n", 1, "expected a finite number but found '-inf'"),
        (b"H-0\t1_0\ta\n", 1, "expected a finite number but found '1_0'"),
        (b"H-0\t-1\ta ||| b\n", 1, "the text holds '|||', which separates fields in the output"),
    ],
)  # fmt: skip
def test_bad_line_is_named(tmp_path: Path, content: bytes, line: int | None, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, content)
    assert caught.value.line == line
    assert str(caught.value) == f"{tmp_path / 'list'}:{f'{line}: ' if line else ' '}{said}"


def test_lines_that_are_no_lists_of_n(tmp_path: Path) -> None:
    for number, lines in ((1, "1 line, which is"), (3, "3 lines, which are")):
        said = rf"list:{number}: ends after {lines} no lists of 2; is this the number of hypotheses\?$"
        with pytest.raises(FormatError, match=said):
            read(tmp_path, b"a\n" * number, "lines:2")


@pytest.mark.parametrize("name", ["xml", "moses:3", "factors:100", "factors:", ""])
def test_unknown_name_is_refused(name: str) -> None:
    known = "auto, moses, factors, scored, fairseq, lines:N"
    with pytest.raises(ConfigError, match=f"^--nbest-format knows {known}, not '{name}'$"):
        check_format(name)


@pytest.mark.parametrize("name", ["lines", "lines:0", "lines:x", "lines:" + "9" * 5000])
def test_lines_without_their_number_are_refused(name: str) -> None:
    problem = rf"^--nbest-format {name[:60]} needs the number of hypotheses of a sentence, such as lines:5$"
    with pytest.raises(ConfigError, match=problem):
        check_format(name)


@pytest.mark.parametrize(
    "lines",
    [
        "0 ||| a ||| LM0= 1 ||| -1\n{0}1 ||| b ||| LM0= 2 ||| -2\n",
        "0 ||| a ||| 1.5\n{0}1 ||| b ||| 2.5\n",
        "{0}0 ||| a|X b|Y c|Z ||| LM0= 1 ||| -1\n1 ||| d|X ||| LM0= 2 ||| -2\n",
    ],
)
@pytest.mark.parametrize("blank", ["\n", "\r\n", "\n\n\n"])
def test_blank_lines_are_passed_over_as_by_moses_tools(tmp_path: Path, lines: str, blank: str) -> None:
    for name, put in (("with", blank), ("without", "")):
        (tmp_path / name).write_text(lines.format(put) + put, newline="")
    found, expected = (list(read_entries(str(tmp_path / name))) for name in ("with", "without"))
    assert [entry._replace(line=0) for entry in found] == [entry._replace(line=0) for entry in expected]
    with ordered_lists(str(tmp_path / "with")) as ordered:
        assert ordered.sentences == 2


@pytest.mark.parametrize(("lines", "text"), [(499, "a|X"), (500, "a")])
def test_factors_are_those_of_the_first_500_lines(tmp_path: Path, lines: int, text: str) -> None:
    assert check_format("Lines:07") == "lines:7" and check_format("FACTORS:01") == "factors:1"
    assert read(tmp_path, b"0 ||| a|X ||| A= 1\n" * lines + b"0 ||| b ||| A= 1\n")[0].text == text


def test_any_factor_may_be_the_word(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("0 ||| the|DT house|NN ||| LM0= 1 ||| -1\n")
    assert [entry.text for entry in read_entries(str(tmp_path / "list"), format="factors:1")] == ["DT NN"]
    with pytest.raises(FormatError, match=r"list:1: the word 'the\|DT' has no factor 2"):
        list(read_entries(str(tmp_path / "list"), format="factors:2"))
