"""The number that cross-validation reports: of each fold by the share that is the best in the others."""

from __future__ import annotations

import numpy as np

from smt_bridge.metrics.metric import BLEU
from smt_bridge.tuning.held_out import _Fold, _validation
from smt_bridge.tuning.pool import Column, NbestPool

SENTENCES = 40


def counts(matching: int) -> np.ndarray:
    """Of half of the sentences, (S / 2, 10): so many matching words of ten."""
    one = [*np.maximum(matching - np.arange(4), 0), 10, 9, 8, 7, 10, 10]
    return np.tile(np.array(one, dtype=np.int64), (SENTENCES // 2, 1))


def test_no_fold_has_a_part_in_the_choice_of_its_own_share() -> None:
    """By both folds the second share is better, by the second fold alone the first one."""
    folds = [
        _Fold([1.0, 2.0], np.stack([counts(4), counts(9)])),
        _Fold([3.0, 4.0], np.stack([counts(8), counts(7)])),
    ]
    statistics = np.zeros((SENTENCES, 1, 10), dtype=np.int64)
    pool = NbestPool((Column("A", 0),), np.zeros((1, SENTENCES, 1)), statistics, np.zeros((SENTENCES, 1)))
    validation, held_out = _validation(pool, folds)
    assert (held_out[0::2] == counts(4)).all() and (held_out[1::2] == counts(7)).all()
    assert validation.tuned == (1.0 + 4.0) / 2
    assert validation.held_out == float(BLEU.score(held_out.sum(axis=0)))
