"""The comparison gives sacrebleu's own numbers and signatures."""

from __future__ import annotations

from typing import Any

import pytest
import sacrebleu

from smt_bridge.metrics.significance import Interval, compare

REFERENCES = [f"the cat number {index} sat on the mat" for index in range(40)]
BEFORE = [text.replace("sat on", "sits at") for text in REFERENCES]


def test_better_output_is_significant_and_equals_sacrebleu() -> None:
    bleu, chrf = compare(BEFORE, REFERENCES, [REFERENCES], tokenize="13a", test="bs", samples=100)
    assert (bleu.metric, chrf.metric) == ("BLEU", "chrF2")
    assert bleu.before == sacrebleu.corpus_bleu(BEFORE, [REFERENCES]).score
    assert chrf.before == sacrebleu.corpus_chrf(BEFORE, [REFERENCES]).score
    assert bleu.p_value is not None
    assert bleu.p_value < 0.05
    assert "tok:13a" in bleu.signature
    assert "bs:100" in bleu.signature


def test_equal_outputs_are_not_significant() -> None:
    bleu, _ = compare(BEFORE, BEFORE, [REFERENCES], tokenize="none", test="ar", samples=100)
    assert bleu.p_value == 1.0


def test_no_test_gives_no_p_value() -> None:
    for comparison in compare(BEFORE, REFERENCES, [REFERENCES], tokenize="none", test="none"):
        assert comparison.p_value is None
        assert comparison.after > comparison.before


def test_all_three_metrics_with_intervals_from_either_test() -> None:
    mixed = [text if place % 3 else text.replace("sat", "sits") for place, text in enumerate(BEFORE)]
    for test in ("bs", "ar"):
        found = compare(
            mixed, REFERENCES, [REFERENCES], tokenize="none", test=test, samples=50, metrics=("BLEU", "chrF", "TER")
        )
        assert [comparison.metric for comparison in found] == ["BLEU", "chrF2", "TER"]
        assert all("version:" in comparison.signature for comparison in found)
        ter = found[2]
        assert ter.before == sacrebleu.corpus_ter(mixed, [REFERENCES]).score
        assert (ter.after, ter.p_value is not None and ter.p_value < 0.05) == (0.0, True)
        assert found[0].before_interval == _sacrebleu_interval(sacrebleu.BLEU(tokenize="none", force=True), mixed, test)


def _sacrebleu_interval(metric: Any, texts: list[str], test: str) -> Interval:
    """What sacrebleu says when it is asked for intervals alone, with as many samples."""
    score = metric.corpus_score(texts, [REFERENCES], n_bootstrap=50 if test == "bs" else 1000)
    return Interval(pytest.approx(score._mean), pytest.approx(score._ci))


def test_equal_outputs_have_p_of_one_in_every_metric() -> None:
    for test in ("bs", "ar"):
        found = compare(
            BEFORE, BEFORE, [REFERENCES], tokenize="none", test=test, samples=50, metrics=("BLEU", "chrF", "TER")
        )
        assert [comparison.p_value for comparison in found] == [1.0, 1.0, 1.0]
