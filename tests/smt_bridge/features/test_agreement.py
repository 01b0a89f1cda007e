"""Expected BLEU against sacrebleu, hypothesis by hypothesis."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from nmt_core.base.errors import ConfigError
from nmt_core.version import VERSION
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.features.mbr import MbrBleu, Weighting, bleu_of_all

LISTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", "é", "😀"]), max_size=9).map(" ".join), min_size=1, max_size=6
)


def sacrebleu_of_all(texts: Sequence[str]) -> list[list[float]]:
    metric = BLEU(tokenize="none", effective_order=True)
    return [[metric.sentence_score(text, [other]).score / 100 for other in texts] for text in texts]


@given(LISTS)
@settings(max_examples=150)
def test_sentence_bleu_of_all_pairs_is_sacrebleus(texts: list[str]) -> None:
    assert np.allclose(bleu_of_all(texts), sacrebleu_of_all(texts), atol=1e-12)


def test_many_items_are_taken_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(1)
    texts = [" ".join(generator.choices("abcdefg", k=generator.randrange(1, 30))) for _ in range(12)]
    whole = bleu_of_all(texts)
    monkeypatch.setattr("smt_bridge.features.mbr._CELLS", 100)
    assert np.array_equal(bleu_of_all(texts), whole)


def test_expectation_over_real_lists(shared: Path) -> None:
    from smt_bridge.nbest.entry import runs_of_sentence
    from smt_bridge.nbest.formats import read_entries

    path = shared / "moses/en-fr/val.first20.nbest10.with-alignment.gz"
    for each in list(runs_of_sentence(read_entries(str(path))))[:8]:
        texts = [entry.text for entry in each.entries]
        totals = [entry.total or 0.0 for entry in each.entries]
        matrix = sacrebleu_of_all(texts)
        weights = [math.exp(0.5 * total) for total in totals]
        uniform = [math.fsum(row) / len(row) for row in matrix]
        posterior = [sum(w * value for w, value in zip(weights, row, strict=True)) / sum(weights) for row in matrix]
        group = Candidates("", texts, totals)
        assert [row[0] for row in MbrBleu().compute([group])[0]] == pytest.approx(uniform)
        assert [row[0] for row in MbrBleu("posterior:0.5").compute([group])[0]] == pytest.approx(posterior)


def test_lines_of_equal_text_add_their_weights() -> None:
    group = Candidates("", ["a b", "c", "a b", "a b"])
    rows = MbrBleu().compute([group])[0]
    assert [row[0] for row in rows] == pytest.approx([0.75, 0.25, 0.75, 0.75])


@pytest.mark.parametrize("feature", [MbrBleu(), MbrBleu("posterior")])
def test_lists_of_one_and_of_none(feature: MbrBleu) -> None:
    groups = [Candidates("", ["a b c"], [1e300]), Candidates("", [], []), Candidates("", [""], [0.0])]
    assert feature.compute(groups) == [[(pytest.approx(1.0),)], [], [(0.0,)]]


def test_posterior_of_large_totals_stays_finite() -> None:
    group = Candidates("", ["a", "b"], [-1e5, -1e5 - math.log(3)])
    assert Weighting.parse("posterior").of(group).tolist() == pytest.approx([0.75, 0.25], rel=1e-6)


def test_posterior_without_totals_is_refused() -> None:
    problem = "^the list has lines without a total, which posterior weights are made of; use uniform$"
    with pytest.raises(WiringError, match=problem):
        MbrBleu("posterior").compute([Candidates("", ["a"])])


@pytest.mark.parametrize("text", ["even", "posterior:x", "posterior:-1", "posterior:nan", "posterior:inf", "uniform:2"])
def test_unknown_weighting_is_refused(text: str) -> None:
    forms = "uniform, posterior, posterior:SCALE, systems or systems:SCALE"
    with pytest.raises(ConfigError, match=f"^'{text}' is not a weighting; expected {forms}$"):
        Weighting.parse(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", "uniform"), ("posterior", "posterior:1"), ("posterior:0", "posterior:0"), ("systems:2.50", "systems:2.5")],
)
def test_signatures_have_the_weighting(text: str, shown: str) -> None:
    assert MbrBleu(text).signature == f"feature:mbrbleu|weights:{shown}|smooth:exp|eff:yes|tok:none|version:{VERSION}"


def test_systems_have_equal_say_whatever_their_lists_lengths() -> None:
    numbers = [(1, 0.0, 0, -9.0), (1, -math.log(3.0), 0, -9.0), (0, -1.0, 1, 0.0)]
    names = ("InA0", "TotalA0", "InB0", "TotalB0")
    known = {f"{kind}{system}0": (0.0,) for kind in ("First", "Rank") for system in "AB"}
    rows = [known | {name: (float(value),) for name, value in zip(names, row, strict=True)} for row in numbers]
    group = Candidates("", ["a", "b", "c"], None, rows)
    assert Weighting.parse("systems").of(group).tolist() == pytest.approx([0.375, 0.125, 0.5])
    assert Weighting.parse("systems:0").of(group).tolist() == pytest.approx([0.25, 0.25, 0.5])
    alone = group._replace(columns=[row | {"InB0": (0.0,)} for row in rows])
    assert Weighting.parse("systems").of(alone).tolist() == pytest.approx([0.75, 0.25, 0.0])
    without = [{name: value for name, value in row.items() if name != "TotalA0"} for row in rows]
    assert Weighting.parse("systems").of(group._replace(columns=without)).tolist() == pytest.approx([0.25, 0.25, 0.5])
    problem = (
        "^the list has no columns FirstS0, InS0 and RankS0 of a system S, as `smt-bridge add-features` makes them of"
        " several lists; use uniform or posterior$"
    )
    with pytest.raises(WiringError, match=problem):
        Weighting.parse("systems").of(Candidates("", ["a"], [1.0]))
