"""BLEU and its counts against sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from nmt_core.files import read_text_lines
from smt_bridge.metrics.bleu import bleu, bleu_counts, sacrebleu_tokenizer


def counts_of_sacrebleu(hypothesis: str, references: Sequence[str], tokenize: str) -> list[int]:
    score = BLEU(tokenize=tokenize, force=True).corpus_score([hypothesis], [[reference] for reference in references])
    return [*score.counts, *score.totals, score.sys_len, score.ref_len]


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str) -> float:
    tokenizer = sacrebleu_tokenizer(tokenize)
    rows = [bleu_counts(texts, [text], tokenizer) for text, *texts in zip(hypotheses, *references, strict=True)]
    return float(bleu(np.concatenate(rows).sum(axis=0)))


@pytest.mark.parametrize(
    ("reference", "tokenize"), [("val.tok.fr.gz", "none"), ("val.fr.gz", "13a"), ("val.fr.gz", "intl")]
)
def test_corpus_bleu_equals_sacrebleu_on_real_output(shared: Path, reference: str, tokenize: str) -> None:
    hypotheses = list(read_text_lines(str(shared / "moses/en-fr/val.1best.fr.gz")))
    references = list(read_text_lines(str(shared / "data/multi30k" / reference)))
    expected = BLEU(tokenize=tokenize, force=True).corpus_score(hypotheses, [references]).score
    assert corpus_bleu(hypotheses, [references], tokenize) == pytest.approx(expected, abs=1e-9)


TEXT = st.lists(st.sampled_from(["a", "b", "c", "a.b", "d'e", "\u00a0", "É"]), max_size=9).map(" ".join)


@example("a b c", ["a b", "a b c d"], "none")  # two references of lengths as close
@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), st.sampled_from(["none", "13a"]))
def test_counts_equal_sacrebleu(hypothesis: str, references: list[str], tokenize: str) -> None:
    found = bleu_counts(references, [hypothesis], sacrebleu_tokenizer(tokenize))[0]
    assert found.tolist() == counts_of_sacrebleu(hypothesis, references, tokenize)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=4, max_size=4),
    st.integers(1, 30),
    st.integers(1, 30),
)
def test_smoothing_equals_sacrebleu(orders: list[tuple[int, int]], system: int, reference: int) -> None:
    matches = [count for count, _ in orders]
    totals = [count + more for count, more in orders]
    expected = BLEU.compute_bleu(list(matches), list(totals), system, reference, smooth_method="exp").score
    assert float(bleu([*matches, *totals, system, reference])) == pytest.approx(expected, rel=1e-12)


def test_hypotheses_are_prepared_and_references_are_not() -> None:
    counts = bleu_counts(["L'homme"], ["l ' homme"], str.lower, lambda text: text.replace(" ' ", "'"))
    assert counts[0, 0] == 1
