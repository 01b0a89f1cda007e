"""The columns that scorers add to a window of a table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import NmtError
from nmt_core.base.interfaces import PairScore
from smt_bridge.model_checks import FLOOR
from smt_bridge.moses_lines import Factors
from smt_bridge.tables.scoring import Counts, Scorers, added_columns, format_probability, rescore_window
from smt_bridge.tables.table import Window
from tests.fakes import LengthPairScorer, TablePairScorer


def joined(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def window(*lines: bytes, first: int = 1) -> Window:
    return Window("table.gz", first, 1, b"\n".join(lines))


def test_columns_stand_in_the_order_they_are_named() -> None:
    direct = TablePairScorer({("das Haus", "the house"): PairScore(math.log(0.25), 0, 2)})
    reverse = TablePairScorer({("the house", "das Haus"): PairScore(math.log(0.5), 2, 1)})
    scorers = Scorers(direct, reverse, unknown_count=True)
    rescored = rescore_window(window(b"das Haus ||| the house ||| 0.1 ||| 0-0"), scorers)
    assert added_columns(reverse=True, unknown_count=True) == ("p(target|source)", "p(source|target)", "exp(unknown)")
    assert rescored.content == joined(b"das Haus ||| the house ||| 0.1 0.25 0.5 7.38906 ||| 0-0")
    assert rescored.counts == Counts(1, 1, 0, 2, 0, 2, 2, math.log(0.25), math.log(0.5))


def test_equal_pairs_are_scored_once_and_written_each_time() -> None:
    scorer = TablePairScorer({("a", "x"): 0.0, ("a", "y"): math.log(0.5)})
    lines = [b"a ||| x ||| 1 |||", b"a ||| y ||| 1 |||", b"a ||| x ||| 0.5 |||"]
    rescored = rescore_window(window(*lines), Scorers(scorer))
    assert rescored.content == joined(b"a ||| x ||| 1 1 |||", b"a ||| y ||| 1 0.5 |||", b"a ||| x ||| 0.5 1 |||")
    assert scorer.scored == [("a", "x"), ("a", "y")]


def test_deletion_is_scored_and_empty_source_is_neutral() -> None:
    scorer = TablePairScorer({("a", ""): math.log(0.125)})
    rescored = rescore_window(window(b"a |||  ||| 1", b" ||| b ||| 1"), Scorers(scorer, unknown_count=True))
    assert rescored.content == joined(b"a |||  ||| 1 0.125 1", b" ||| b ||| 1 1 1")
    assert (rescored.counts.pairs, rescored.counts.target_words) == (1, 0)


def test_model_reads_words_with_single_blanks_and_replaced_bytes() -> None:
    scorer = TablePairScorer({("a b", "c\N{NO-BREAK SPACE}d \ufffd"): 0.0})
    rescore_window(window(b"\ta  b ||| c\xc2\xa0d \xff ||| 1"), Scorers(scorer))
    assert len(scorer.scored) == 1


def test_escapes_are_undone_only_on_demand() -> None:
    line = b"l &apos; &amp;lt; &#124; ||| &bra; &quot; ||| 1"
    raw = TablePairScorer({("l &apos; &amp;lt; &#124;", "&bra; &quot;"): 0.0})
    plain = TablePairScorer({("l ' &lt; |", '[ "'): 0.0})
    assert rescore_window(window(line), Scorers(raw)).content == joined(line + b" 1")
    assert rescore_window(window(line), Scorers(plain, unescape=True)).content == joined(line + b" 1")


def test_small_probabilities_are_floored_and_counted() -> None:
    scorer = TablePairScorer({("a", "x"): -99.0, ("a", "y"): -99.5, ("a", "z"): -1e6})
    rescored = rescore_window(window(*[b"a ||| %b ||| 1" % word for word in (b"x", b"y", b"z")]), Scorers(scorer))
    assert rescored.content.splitlines()[1:] == [b"a ||| y ||| 1 1e-43", b"a ||| z ||| 1 1e-43"]
    assert rescored.counts.floored == 2
    reverse = TablePairScorer({("x", "a"): -99.5, ("y", "a"): -1.0, ("z", "a"): -1e6})
    both = rescore_window(window(*[b"a ||| %b ||| 1" % word for word in (b"x", b"y", b"z")]), Scorers(scorer, reverse))
    assert both.counts.floored == 4


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("reverse", [False, True])
def test_scorer_gone_wrong_stops_and_names_the_line(bad: float, reverse: bool) -> None:
    good = LengthPairScorer()
    broken = TablePairScorer({("a", "x"): -1.0, ("a", "y"): bad, ("x", "a"): -1.0, ("y", "a"): bad})
    scorers = Scorers(good, broken) if reverse else Scorers(broken)
    with pytest.raises(NmtError, match=r"table\.gz:8: .*`a \|\|\| y`"):
        rescore_window(window(b"a ||| x ||| 1", b"a ||| y ||| 1", first=7), scorers)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_probability_above_1_stops_and_names_the_line(*, reverse: bool) -> None:
    broken = TablePairScorer({("a", "x"): 1e-6, ("a", "y"): 1e-4, ("x", "a"): 1e-6, ("y", "a"): 1e-4})
    scorers = Scorers(LengthPairScorer(), broken) if reverse else Scorers(broken)
    with pytest.raises(NmtError, match=r"table\.gz:8: .* 0\.0001, a probability above 1, .*`a \|\|\| y`"):
        rescore_window(window(b"a ||| x ||| 1", b"a ||| y ||| 1", first=7), scorers)


@pytest.mark.parametrize(("log_prob", "softmax"), [(1e-6, "full"), (0.5, "none")])
def test_rounding_and_scores_that_are_not_normalised_are_written_as_1(log_prob: float, softmax: str) -> None:
    scorer = TablePairScorer({("a", "x"): log_prob})
    scorer.signature = f"nmt:rnnsearch|model:0a|log:e|norm:none|softmax:{softmax}"
    assert rescore_window(window(b"a ||| x ||| 1"), Scorers(scorer)).content == joined(b"a ||| x ||| 1 1")


def test_many_unknown_words_stay_in_the_range_of_the_decoder() -> None:
    scorer = TablePairScorer({("a", "x"): PairScore(-1.0, 0, 1000)})
    line = rescore_window(window(b"a ||| x ||| 1"), Scorers(scorer, unknown_count=True)).content
    assert float(line.split(b" ")[-1]) < 3.4e38


@given(st.floats(-1e9, 1.0))
def test_probability_is_one_the_decoder_takes(log_prob: float) -> None:
    number = format_probability(log_prob)
    assert FLOOR <= float(number) <= 1.0
    assert math.log(float(number)) == pytest.approx(min(max(log_prob, math.log(FLOOR)), 0.0), abs=1e-5)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "x y", "z"])), min_size=2), st.data())
def test_lines_do_not_depend_on_the_window(phrases: list[tuple[str, str]], data: st.DataObject) -> None:
    lines = [f"{source} ||| {target} ||| 1 ||| 0-0".encode() for source, target in phrases]
    cut = data.draw(st.integers(1, len(lines) - 1))
    scorers = Scorers(LengthPairScorer(), LengthPairScorer(0.25), unknown_count=True)
    whole = rescore_window(window(*lines), scorers)
    parts = [rescore_window(window(*part), scorers) for part in (lines[:cut], lines[cut:])]
    assert parts[0].content + parts[1].content == whole.content
    assert parts[0].counts.lines + parts[1].counts.lines == whole.counts.lines


def test_one_factor_is_scored_and_all_bytes_pass() -> None:
    line = b"das|ART Haus|NN ||| the|DT house|NN ||| 0.1 ||| 0-0"
    scorer = TablePairScorer({("das Haus", "DT NN"): math.log(0.25)})
    rescored = rescore_window(window(line), Scorers(scorer, factors=Factors(0, 1)))
    assert rescored.content == joined(line.replace(b"0.1", b"0.1 0.25"))
    bare = window(line, b"das|ART ||| the ||| 1", first=7)
    with pytest.raises(NmtError, match=r"table.gz:8: the word 'the' has no factor 1"):
        rescore_window(bare, Scorers(LengthPairScorer(1.0), factors=Factors(0, 1)))


def test_rules_are_scored_by_their_words_and_all_bytes_pass() -> None:
    lines = [
        b"[X][X] de [X] ||| of [X][X] [X] ||| 0.1 ||| 0-1 1-0",
        b"de [X][X] [X] ||| [X][X] of [NP] ||| 0.1 ||| 0-1 1-0",
        b"le [X][NP] noir [X] ||| the black [X][NP] [S] ||| 0.1 ||| 0-0 1-2 2-1",
        b"le [X][X] [X] ||| [X][X] [X] ||| 0.1 ||| 1-0",
        b"[X][X] [X] ||| the [X][X] [X] ||| 0.1 ||| 0-1",
        b"[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 0.1 ||| 0-0 1-1",
        b"<s> [X] ||| <s> [S] ||| 0.1 ||| 0-0",
    ]
    scores = {("de", "of"): math.log(0.5), ("le noir", "the black"): math.log(0.25), ("le", ""): math.log(0.125)}
    scorer = TablePairScorer(scores)
    rescored = rescore_window(window(*lines)._replace(rules=True), Scorers(scorer))
    expected = [b"0.5", b"0.5", b"0.25", b"0.125", b"1", b"1", b"1"]
    pairs = zip(lines, expected, strict=True)
    assert rescored.content == joined(*(line.replace(b"0.1 ", b"0.1 %b " % new) for line, new in pairs))
    assert len(scorer.scored) == 3


def test_a_phrase_of_too_many_words_is_named() -> None:
    table = window(b"a ||| x ||| 1", b"a ||| x  y z ||| 1", first=7)
    assert rescore_window(table, Scorers(LengthPairScorer(1.0), most_words=3)).counts.lines == 2
    with pytest.raises(NmtError, match=r"table.gz:8: has 3 words; up to 2 are taken"):
        rescore_window(table, Scorers(LengthPairScorer(1.0), most_words=2))


def test_a_language_model_does_not_score_the_reverse() -> None:
    model = LengthPairScorer(1.0)
    model.signature = "nmt:rnnlm|model:0a"
    with pytest.raises(NmtError, match=r"^p\(source\|target\) needs a model that reads the source"):
        Scorers(LengthPairScorer(1.0), model)
