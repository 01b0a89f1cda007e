"""The comparison gives sacrebleu's own numbers and signatures."""

from __future__ import annotations

import sacrebleu

from smt_bridge.metrics.significance import compare

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
