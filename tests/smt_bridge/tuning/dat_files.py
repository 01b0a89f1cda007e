"""Pools as files of Moses' tuners: ``features.dat`` and ``scores.dat`` for tests of their reader."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smt_bridge.metrics.bleu import ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH
from smt_bridge.tuning.moses_dat import dense_places
from smt_bridge.tuning.pool import NbestPool


def features_dat(pool: NbestPool) -> Iterator[bytes]:
    """The lines of ``features.dat``; value i of a feature is called ``NAME_i``, sparse ones stand in the lines."""
    dense = dense_places(pool)
    sparse = [place for place in range(pool.dense) if place not in set(dense)]
    labels = " ".join(f"{pool.columns[place].name}_{pool.columns[place].component}" for place in dense)
    names = [column.name for column in pool.columns]
    for place, (sentence, real) in enumerate(_entries(pool)):
        yield f"FEATURES_TXT_BEGIN_0 {sentence} {len(real)} {len(dense)} {labels}\n".encode("utf-8", "surrogateescape")
        length = pool.padding.shape[1]
        more: dict[int, list[str]] = {}
        for row, column, value in zip(*pool.sparse.between(place * length, (place + 1) * length), strict=True):
            more.setdefault(int(row), []).append(f"{names[pool.dense + column]}={value:.9g}")
        for entry in real.tolist():
            values = pool.features[:, place, entry]
            tokens = [f"{value:.9g}" for value in values[dense]]
            tokens += [f"{names[column]}={values[column]:.9g}" for column in sparse if values[column] != 0.0]
            line = " ".join((*tokens, *more.get(entry, ())))
            yield line.encode("utf-8", "surrogateescape") + b"\n"
        yield b"FEATURES_TXT_END_0\n"


def scores_dat(pool: NbestPool) -> Iterator[bytes]:
    """The lines of ``scores.dat``: matches and totals of n-grams side by side, and the reference's length."""
    order = [column for n in range(ORDER) for column in (n, ORDER + n)] + [REFERENCE_LENGTH]
    for place, (sentence, real) in enumerate(_entries(pool)):
        yield f"SCORES_TXT_BEGIN_0 {sentence} {len(real)} {len(order)} BLEU\n".encode()
        counts = pool.statistics[place, real]
        counts[:, ORDER] = counts[:, SYSTEM_LENGTH]  # Moses takes the length from the number of words
        for row in counts[:, order]:
            yield (" ".join(map(str, row.tolist())) + " \n").encode()
        yield b"SCORES_TXT_END_0\n"


def _entries(pool: NbestPool) -> Iterator[tuple[int, np.ndarray[tuple[int], np.dtype[np.intp]]]]:
    for sentence, padding in enumerate(pool.padding):
        yield sentence, np.flatnonzero(np.isfinite(padding))
