"""A pool as Moses' tuners (``mert``, ``kbmira``, ``pro``) want it: ``features.dat`` and ``scores.dat``, as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smt_bridge.metrics.bleu import ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH
from smt_bridge.tuning.pool import NbestPool


def features_dat(pool: NbestPool) -> Iterator[bytes]:
    """The lines of ``features.dat``; value i of a feature is called ``NAME_i``."""
    labels = " ".join(f"{column.name}_{column.component}" for column in pool.columns)
    for sentence, real in _entries(pool):
        yield f"FEATURES_TXT_BEGIN_0 {sentence} {len(real)} {len(pool.columns)} {labels}\n".encode()
        for row in pool.features[:, sentence, real].T:
            yield (" ".join(f"{value:.9g}" for value in row) + "\n").encode()
        yield b"FEATURES_TXT_END_0\n"


def scores_dat(pool: NbestPool) -> Iterator[bytes]:
    """The lines of ``scores.dat``: matches and totals of n-grams side by side, and the reference's length."""
    order = [column for n in range(ORDER) for column in (n, ORDER + n)] + [REFERENCE_LENGTH]
    for sentence, real in _entries(pool):
        yield f"SCORES_TXT_BEGIN_0 {sentence} {len(real)} {len(order)} BLEU\n".encode()
        counts = pool.statistics[sentence, real]
        counts[:, ORDER] = counts[:, SYSTEM_LENGTH]  # Moses takes the length from the number of words
        for row in counts[:, order]:
            yield (" ".join(map(str, row.tolist())) + " \n").encode()
        yield b"SCORES_TXT_END_0\n"


def _entries(pool: NbestPool) -> Iterator[tuple[int, np.ndarray[tuple[int], np.dtype[np.intp]]]]:
    for sentence, padding in enumerate(pool.padding):
        yield sentence, np.flatnonzero(np.isfinite(padding))
