"""The best choice, against all choices there are."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import sacrebleu

from smt_bridge.metrics.bleu import Counts, bleu, bleu_counts
from smt_bridge.metrics.oracle import _beginnings, oracle

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "big", "red"]


def lists(seed: int, sentences: int = 4, size: int = 5) -> tuple[list[list[str]], list[str], list[Counts]]:
    """Hypotheses near their references, the references, and the counts."""
    generator = random.Random(seed)
    references = [" ".join(generator.choices(WORDS, k=generator.randint(5, 12))) for _ in range(sentences)]
    hypotheses = [[_noisy(generator, reference) for _ in range(size)] for reference in references]
    counts = [bleu_counts([one], texts, str) for one, texts in zip(references, hypotheses, strict=True)]
    return hypotheses, references, counts


def _noisy(generator: random.Random, reference: str) -> str:
    words = [word if generator.random() < 0.7 else generator.choice(WORDS) for word in reference.split(" ")]
    return " ".join(words[: generator.randint(max(1, len(words) - 3), len(words))])


def all_scores(hypotheses: list[list[str]], references: list[str]) -> list[float]:
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    return [metric.corpus_score(choice, [references]).score for choice in itertools.product(*hypotheses)]


@pytest.mark.parametrize("seed", range(5))
def test_oracle_is_the_best_of_all_choices(seed: int) -> None:
    hypotheses, references, counts = lists(seed, sentences=4, size=4)
    found = oracle(counts)
    assert found.bleu == pytest.approx(max(all_scores(hypotheses, references)))
    chosen = [texts[place] for texts, place in zip(hypotheses, found.chosen, strict=True)]
    assert sacrebleu.corpus_bleu(chosen, [references], tokenize="none", force=True).score == pytest.approx(found.bleu)


def test_no_single_change_betters_the_oracle_of_many_sentences() -> None:
    _, _, counts = lists(9, sentences=60, size=8)
    assert len(_beginnings(counts)) == 4
    found = oracle(counts)
    total = sum(rows[place] for rows, place in zip(counts, found.chosen, strict=True))
    for rows, place in zip(counts, found.chosen, strict=True):
        assert bleu(total - rows[place] + rows).max() <= found.bleu + 1e-9


def test_gaps_count_as_empty_output() -> None:
    hypotheses, references, counts = lists(2, sentences=3, size=3)
    gap = bleu_counts([references[2]], [""], str)[0]
    empty = np.zeros((0, 10), dtype=np.int64)
    found = oracle([*counts[:2], empty], gap)
    assert found.chosen[2] == -1
    best = max(all_scores([*hypotheses[:2], [""]], references))
    assert found.bleu == pytest.approx(best)


def test_no_lists_at_all() -> None:
    empty = np.zeros((0, 10), dtype=np.int64)
    assert oracle([empty]) == (0.0, (-1,))
