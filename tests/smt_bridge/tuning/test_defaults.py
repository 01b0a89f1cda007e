"""What is tuned of a list where nobody names columns."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError
from smt_bridge.nbest.merge import baselines
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import TuningPlan, plan_for_list, tuned_by_default
from smt_bridge.tuning.pool import Column, NbestPool

MOSES = ["LM0", "WordPenalty0", "TranslationModel0", "TotalMoses0", "InMoses0", "FirstMoses0", "RankMoses0"]
NMT = ["NmtNMT0", "TotalNmt0", "InNmt0", "FirstNmt0", "RankNmt0"]
GRAPH = ["GraphLM0", "TotalGraph0", "InGraph0", "FirstGraph0", "RankGraph0"]
ADDED = ["NMT0", "NMTreverse0", "KENLM0", "WordCount0"]
OF_TWO = ["TotalMoses0", "InMoses0", "RankMoses0", "TotalNmt0", "RankNmt0"]


def pool_of(names: list[str]) -> NbestPool:
    values = np.zeros((len(names), 2, 2))
    return NbestPool(tuple(Column(name, 0) for name in names), values, np.zeros((2, 2, 10), int), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("names", "recomputed", "expected"),
    [
        ([*MOSES, *NMT, *ADDED], [], [*OF_TWO, *ADDED]),
        ([*MOSES, *NMT, *ADDED], ["LM0"], ["LM0", *OF_TWO, *ADDED]),
        ([*MOSES, *NMT, *ADDED], ["LM0", "WordPenalty0"], ["LM0", *OF_TWO, *ADDED]),
        ([*MOSES, *NMT, "NMT0"], ["WordPenalty0"], ["WordPenalty0", *OF_TWO, "NMT0"]),
        ([*MOSES, *NMT], [], OF_TWO),
        ([*MOSES, *NMT, *GRAPH, "NMT0"], [], [*OF_TWO[:4], "InNmt0", "RankNmt0", "TotalGraph0", "RankGraph0", "NMT0"]),
        (["InA0", "FirstA0", "RankA0", "InB0", "FirstB0", "RankB0"], [], ["InA0", "RankA0", "RankB0"]),
        ([*MOSES, "NMT0"], [], ["TotalMoses0", "RankMoses0", "NMT0"]),
    ],
)
def test_of_each_system_total_rank_and_in_and_what_was_added(
    names: list[str], recomputed: list[str], expected: list[str]
) -> None:
    assert tuned_by_default(names, recomputed) == tuple(expected)


@pytest.mark.parametrize("names", [["LM0", "NMT0"], ["First0", "LM0"], ["FirstMoses0", "InMoses0"], []])
def test_a_list_of_a_single_system_is_tuned_as_before(names: list[str]) -> None:
    assert baselines(names) == ()
    assert tuned_by_default(names) is None
    options = TuningOptions(runs=2)
    assert plan_for_list(pool_of(names), None, options) == TuningPlan(None, options)


def test_a_merged_list_is_compared_with_its_systems() -> None:
    pool = pool_of([*MOSES, *NMT, *ADDED])
    plan = plan_for_list(pool, None, TuningOptions())
    assert plan.baselines == ("FirstMoses0", "FirstNmt0")
    assert plan.options.features == (*OF_TWO, *ADDED)
    assert (plan.ridges, plan.options.folds) == ((0.0, 0.15, 0.3, 0.5), 5)
    alone = plan_for_list(pool.of_sentences(np.arange(1)), None, TuningOptions())
    assert (alone.baselines, alone.options.folds) == (plan.baselines, None)  # there is nothing to hold out
    named = plan_for_list(pool, None, TuningOptions(features=("NMT0",), tuner="mira", folds=3))
    assert (named.options.features, named.options.folds) == (("NMT0",), 3)
    assert named.ridges == (0.0,)


KNOWN = "expected mert, mira, pro, or one of runs=, seed=, restarts=, folds=, passes=, c=, decay="


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mira", "restarts=3"], "--tuner restarts= is a key of mert; mira does not use it"),
        (["c=0.1"], "--tuner c= is a key of mira; mert does not use it"),
        (["c=nan", "mira"], "--tuner c=nan: Input should be a finite number"),
        (["mirra"], "--tuner mirra: expected mert, mira or pro"),
        (["steps=1"], f"--tuner steps=: {KNOWN}"),
        (["features=A"], f"--tuner features=: {KNOWN}"),
        (["mira", "c=0"], "--tuner c=0: Input should be greater than 0"),
        (["mira", "decay=1.1"], "--tuner decay=1.1: Input should be less than or equal to 1"),
        (["mira", "passes=0"], "--tuner passes=0: Input should be greater than or equal to 1"),
        (["mira", "pro"], "--tuner pro: a tuner is given twice"),
        (["runs=1", "runs=2"], "--tuner runs=2: runs is given twice"),
        (["runs=0"], "--tuner runs=0: Input should be greater than or equal to 1"),
        (["seed=-1"], "--tuner seed=-1: Input should be greater than or equal to 0"),
        (["restarts=-1"], "--tuner restarts=-1: Input should be greater than or equal to 0"),
    ],
)
def test_what_the_tuner_does_not_use_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        TuningOptions.of(words)
    edge = ["mira", "decay=1", "passes=1", "runs=1", "seed=0", "folds=2"]
    assert TuningOptions.of(edge) == TuningOptions(tuner="mira", decay=1.0, passes=1, runs=1, seed=0, folds=2)
