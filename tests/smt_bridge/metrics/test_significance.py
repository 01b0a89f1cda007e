"""The comparison gives sacrebleu's own numbers and signatures."""

from __future__ import annotations

import pytest
import sacrebleu

from smt_bridge.metrics.significance import Interval, compare

REFERENCES = [f"the cat number {index} sat on the mat" for index in range(40)]
BEFORE = [text.replace("sat on", "sits at") for text in REFERENCES]
MIXED = [text if place % 3 else text.replace("sat", "sits") for place, text in enumerate(BEFORE)]


def test_better_output_is_significant_and_equals_sacrebleu() -> None:
    outputs = {"before": BEFORE, "after": REFERENCES}
    bleu, chrf, ter = compare(outputs, [REFERENCES], tokenize="13a", samples=100)
    assert (bleu.metric, chrf.metric, ter.metric) == ("BLEU", "chrF2", "TER")
    assert bleu.best.score == sacrebleu.corpus_bleu(BEFORE, [REFERENCES]).score
    assert chrf.best.score == sacrebleu.corpus_chrf(BEFORE, [REFERENCES]).score
    assert ter.best.score == sacrebleu.corpus_ter(BEFORE, [REFERENCES]).score
    assert all(one.best.p_value is None and (one.last.p_value or 1.0) < 0.05 for one in (bleu, chrf, ter))
    assert ter.last.score == 0.0
    assert "tok:13a" in bleu.signature
    assert "bs:100" in bleu.signature


def test_intervals_are_those_of_sacrebleu() -> None:
    [bleu] = compare({"a": MIXED, "b": REFERENCES}, [REFERENCES], tokenize="none", samples=50, metrics=["BLEU"])
    alone = sacrebleu.BLEU(tokenize="none", force=True).corpus_score(MIXED, [REFERENCES], n_bootstrap=50)
    assert bleu.systems[0].interval == Interval(pytest.approx(alone._mean), pytest.approx(alone._ci))


def test_the_last_is_compared_with_the_best_system_alone() -> None:
    """Also where another was named first: what a combination adds is not what it adds to the worst."""
    outputs = {"worse": BEFORE, "best": REFERENCES, "combined": REFERENCES}
    [bleu] = compare(outputs, [REFERENCES], tokenize="none", samples=50, metrics=["BLEU"])
    assert [one.system for one in bleu.systems] == ["worse", "best", "combined"]
    assert (bleu.best.system, bleu.change, bleu.last.p_value) == ("best", 0.0, 1.0)
    assert bleu.systems[0].p_value is not None and bleu.systems[0].p_value < 0.05
    assert "+0.00 on best, p = 1.0000" in str(bleu)


def test_equal_outputs_have_p_of_one_in_every_metric() -> None:
    found = compare({"a": BEFORE, "b": BEFORE}, [REFERENCES], tokenize="none", samples=50)
    assert [comparison.last.p_value for comparison in found] == [1.0, 1.0, 1.0]
