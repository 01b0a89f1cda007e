"""The columns of a scorer: worked out by hand, and paid for once."""

from __future__ import annotations

import math

import pytest

from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.features.neural import (
    COVERAGE,
    LENGTH_NORMALISED,
    LOG_PROB,
    UNKNOWN_WORDS,
    WEAKEST_WORD,
    PairFeature,
    PairMeasure,
    SharedScorer,
    coverage,
)
from tests.fakes import LengthPairScorer, TablePairScorer

PAIR = SentencePair("s t u", "x y")
GROUP = [Candidates("s t u", ["x y"])]


def looking(*rows: tuple[float, ...]) -> PairScore:
    return PairScore(-3.0, attention=rows)


def test_normalised_score_counts_the_end() -> None:
    found = PairFeature(TablePairScorer({PAIR: -6.0, ("s t u", ""): -1.5}), LENGTH_NORMALISED)
    assert found.compute([Candidates("s t u", ["x y", ""])]) == [[(-2.0,), (-1.5,)]]


def test_weakest_word_is_the_minimum() -> None:
    scorer = TablePairScorer({PAIR: PairScore(-6.0, word_log_probs=(-1.0, -4.5, -0.5))})
    assert PairFeature(scorer, WEAKEST_WORD).compute(GROUP) == [[(-4.5,)]]


def test_unknown_words_are_the_hypothesis_own() -> None:
    scorer = LengthPairScorer(unknown=frozenset(["s", "t", "y"]))
    assert PairFeature(scorer, UNKNOWN_WORDS).compute(GROUP) == [[(1.0,)]]


def test_language_model_reads_no_source() -> None:
    scorer = TablePairScorer({("", "x y"): -2.0})
    assert PairFeature(scorer, LOG_PROB, direction="target").compute(GROUP) == [[(-2.0,)]]


LN = math.log


@pytest.mark.parametrize(
    ("pair", "rows", "penalty", "uncovered"),
    [
        # Totals of s, t, u: 1.1 (counts as 1), 0.6 and 0.2; the end's own column counts for nothing.
        (PAIR, ((0.7, 0.2, 0.1, 0.0), (0.3, 0.3, 0.1, 0.3), (0.1, 0.1, 0.0, 0.8)), LN(0.6) + LN(0.2), 1 / 3),
        (PAIR, ((1.0, 0.0, 0.0),), LN(1e-4), 0.5),
        (PAIR, ((0.5, 0.25, 0.25),), LN(0.5) + LN(0.25), 0.5),  # half a look is not below half a look
        (SentencePair("", "x"), ((1.0,), (1.0,)), 0.0, 0.0),
    ],
)
def test_coverage_is_the_penalty_of_wu_et_al(
    pair: SentencePair, rows: tuple[tuple[float, ...], ...], penalty: float, uncovered: float
) -> None:
    assert coverage(pair, looking(*rows)) == pytest.approx((penalty, uncovered))


@pytest.mark.parametrize(
    ("measure", "problem"),
    [
        (COVERAGE, "NMTcoverage0 needs a model with attention, such as rnnsearch; fake:table has none"),
        (WEAKEST_WORD, "NMTmin0 needs the score of every word; fake:table has none"),
    ],
)
def test_scorer_without_what_a_measure_needs_is_named(measure: PairMeasure, problem: str) -> None:
    feature = PairFeature(TablePairScorer({PAIR: -1.0}), measure)
    with pytest.raises(WiringError, match=f"^{problem}$"):
        feature.compute(GROUP)


def test_features_of_a_scorer_cost_one_call_a_window() -> None:
    scorer = LengthPairScorer()
    shared = SharedScorer(scorer)
    features = [PairFeature(shared, measure) for measure in (LOG_PROB, LENGTH_NORMALISED, WEAKEST_WORD, COVERAGE)]
    shared.expect(per_word=True, attention=True)
    windows = [[Candidates("s t", ["x", "y z", "x"])], [Candidates("u", ["x"])], [Candidates("s t", ["x"])]]
    alone = [PairFeature(LengthPairScorer(), measure) for measure in (LOG_PROB, LENGTH_NORMALISED, WEAKEST_WORD)]
    for window in windows:
        tables = [feature.compute(window) for feature in features]
        assert tables[:3] == [feature.compute(window) for feature in alone]
    assert scorer.calls == [(2, True, True), (1, True, True), (1, True, True)]


def test_what_was_not_announced_is_asked_again() -> None:
    scorer = LengthPairScorer()
    shared = SharedScorer(scorer)
    PairFeature(shared).compute(GROUP)
    assert PairFeature(shared, COVERAGE).compute(GROUP)[0][0][0] < 0
    assert PairFeature(shared, WEAKEST_WORD).compute(GROUP)[0][0][0] < 0
    assert scorer.calls == [(1, False, False), (1, False, True), (1, True, True)]


def test_signature_says_what_was_done() -> None:
    feature = PairFeature(TablePairScorer({("x y", "s t u"): -8.0}), LENGTH_NORMALISED, direction="reverse")
    assert feature.names == ("NMTnormreverse0",)
    assert feature.compute(GROUP) == [[(-2.0,)]]  # per word of the source, and the end
    assert feature.signature == "feature:nmtnorm|direction:reverse|fake:table|tok:none|norm:words"
