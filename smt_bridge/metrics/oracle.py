"""What an n-best list could give: BLEU of the best choice of hypotheses, and of a choice by chance.

The *oracle* has the reference and chooses for each sentence the hypothesis with which BLEU of all sentences together
is highest. BLEU does not add up over sentences, so that the choice of one depends on the others; it is found by
going round the sentences, taking for each the best given the rest, until nothing changes, from several beginnings. What
comes out is reachable and cannot be bettered by changing one sentence. *Chance* draws each hypothesis of a
list with the same probability. A reranker lies between the two; how far up says more than BLEU alone.

Shapes: S sentences, each with counts (N, 10) of its N hypotheses as ``metrics.bleu`` has them; N may be 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, Counts, bleu, sentence_bleu

_DRAWS = 1000
_SEED = 12345  # as sacrebleu's tests
_FEW = 5000  # combinations that are all looked at instead of drawn
_ROUNDS = 50


class Oracle(NamedTuple):
    """The best choice: BLEU in 0..100, and the place of the chosen hypothesis of every sentence (-1 for no list)."""

    bleu: float
    chosen: tuple[int, ...]


class Chance(NamedTuple):
    """BLEU of choices by chance: mean and standard deviation over ``draws``, ``exact`` when these are all there are."""

    mean: float
    deviation: float
    draws: int
    exact: bool


def oracle(statistics: Sequence[Counts], missing: npt.ArrayLike | None = None) -> Oracle:
    """Choose for the highest BLEU; ``missing`` (10,) are counts of sentences outside the lists, such as gaps."""
    base = np.zeros(COLUMNS, dtype=np.int64) if missing is None else np.asarray(missing, dtype=np.int64)
    if not any(map(len, statistics)):
        return Oracle(float(bleu(base)), tuple(-1 for _ in statistics))
    found = [_climb(statistics, base, start) for start in _beginnings(statistics)]
    return max(found, key=lambda choice: choice.bleu)


def _beginnings(statistics: Sequence[Counts]) -> list[list[int]]:
    """By smoothed BLEU of the sentence (Lin and Och 2004), by matches, by recall of words, and the list's own first."""
    return [
        [_best(sentence_bleu(rows)) for rows in statistics],
        [_best(rows[:, :ORDER].sum(axis=1)) for rows in statistics],
        [_best(rows[:, 0] / np.maximum(rows[:, REFERENCE_LENGTH], 1)) for rows in statistics],
        [0 if len(rows) else -1 for rows in statistics],
    ]


def _best(scores: npt.NDArray[np.float64]) -> int:
    return int(scores.argmax()) if len(scores) else -1


def _climb(statistics: Sequence[Counts], base: Counts, start: Sequence[int]) -> Oracle:
    chosen = list(start)
    total = base + sum(rows[choice] for rows, choice in zip(statistics, chosen, strict=True) if choice >= 0)
    for _ in range(_ROUNDS):
        changed = False
        for sentence, rows in enumerate(statistics):
            if len(rows) < 2:
                continue
            others = total - rows[chosen[sentence]]
            scores = bleu(others + rows)
            best = int(scores.argmax())
            if scores[best] > scores[chosen[sentence]]:
                chosen[sentence], total, changed = best, others + rows[best], True
        if not changed:
            break
    return Oracle(float(bleu(total)), tuple(chosen))


def chance(
    statistics: Sequence[Counts], missing: npt.ArrayLike | None = None, *, draws: int = _DRAWS, seed: int = _SEED
) -> Chance:
    """BLEU expected of a choice by chance; all choices are tried where they are few."""
    base = np.zeros(COLUMNS, dtype=np.int64) if missing is None else np.asarray(missing, dtype=np.int64)
    lists = [rows for rows in statistics if len(rows)]
    if prod(map(len, lists)) <= _FEW:
        choices = [base + sum(rows) for rows in itertools.product(*lists)]
        scores = bleu(np.array(choices))
        return Chance(float(scores.mean()), float(scores.std()), len(scores), True)
    generator = np.random.default_rng(seed)
    totals = np.repeat(base[None], draws, axis=0)
    for rows in lists:
        totals += rows[generator.integers(len(rows), size=draws)]
    scores = bleu(totals)
    return Chance(float(scores.mean()), float(scores.std()), draws, False)
