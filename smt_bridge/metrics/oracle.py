"""The best choice from lists, made with the reference: for each sentence the one with which BLEU of all is highest.

BLEU does not add up over sentences, so that the choice of one depends on the others; it is found by going round the
sentences, taking for each the best given the rest, until nothing changes, from several beginnings. What comes out is
reachable and cannot be bettered by changing one sentence.

Shapes: S sentences with N hypotheses each; columns as in ``smt_bridge.metrics.bleu``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, Counts, bleu, bleu_plus_one

_ROUNDS = 50


class Oracle(NamedTuple):
    """The best choice: BLEU in 0..100, and the place of the chosen hypothesis of every sentence (-1 for no list)."""

    bleu: float
    chosen: tuple[int, ...]


def oracle(statistics: Sequence[Counts], missing: npt.ArrayLike | None = None) -> Oracle:
    """Choose for the highest BLEU; ``missing`` (10,) are counts of sentences outside the lists, such as gaps."""
    base = np.zeros(COLUMNS, dtype=np.int64) if missing is None else np.asarray(missing, dtype=np.int64)
    if not any(map(len, statistics)):
        return Oracle(float(bleu(base)), tuple(-1 for _ in statistics))
    found = [_improved(statistics, base, start) for start in _beginnings(statistics)]
    return max(found, key=lambda choice: choice.bleu)


def _beginnings(statistics: Sequence[Counts]) -> list[list[int]]:
    """By BLEU+1 of the sentence, by matches, by recall of words, and the list's own first."""
    return [
        [_best(bleu_plus_one(rows)) for rows in statistics],
        [_best(rows[:, :ORDER].sum(axis=1)) for rows in statistics],
        [_best(rows[:, 0] / np.maximum(rows[:, REFERENCE_LENGTH], 1)) for rows in statistics],
        [0 if len(rows) else -1 for rows in statistics],
    ]


def _best(scores: npt.NDArray[np.float64]) -> int:
    return int(scores.argmax()) if len(scores) else -1


def _improved(statistics: Sequence[Counts], base: Counts, start: Sequence[int]) -> Oracle:
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
