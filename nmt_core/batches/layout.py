"""Which sentence every row of a decoder state belongs to, when sentences have different numbers of rows.

The rows of a sentence stand side by side, sentence after sentence. Attention works through them run
by run: a run is either a piece of one sentence, whose rows look at the same annotations in one matrix
product, or some rows of several sentences, each with a copy of its annotations. On a CPU runs are so
short that what is made for one stays in the cache; on a GPU there are few long ones, each of several
sentences, since every operation costs a launch.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

_RUN = 128  # rows at most: their energies stay in the cache
_POSITIONS = 1 << 14  # rows times positions on a CPU: 64 MiB of energies with 1,000 units in float32
_MANY = 12  # rows of one sentence from which a product of their own is worth it
_LAUNCH = 1 << 16  # rows times positions on a GPU: 256 MiB of energies with 1,000 units in float32


class Run(NamedTuple):
    """Rows ``first`` to ``last`` (exclusive); their sentence, or None for several; their longest source."""

    first: int
    last: int
    sentence: int | None
    width: int


@dataclass(frozen=True)
class Layout:
    """``sentences_N`` (ascending) on the device of the model and on the host, and the positions of their sources.

    ``beginning``: all rows are before their first word.
    """

    sentences_N: Tensor
    on_host_N: npt.NDArray[np.int64]
    widths_B: npt.NDArray[np.int64]
    beginning: bool = False

    @functools.cached_property
    def runs(self) -> list[Run]:
        """The runs, which attention alone asks for."""
        return (long_runs if self.sentences_N.is_cuda else short_runs)(self.on_host_N, self.widths_B)


def short_runs(sentences_N: npt.NDArray[np.int64], widths_B: npt.NDArray[np.int64]) -> list[Run]:
    """Runs for a CPU: sentences with many rows by themselves, others together, a few rows at a time."""
    changes = np.flatnonzero(np.diff(sentences_N)) + 1
    starts = np.concatenate(([0], changes))
    ends = np.concatenate((changes, [len(sentences_N)]))
    runs: list[Run] = []
    waiting = 0  # first row that has no run yet
    for place in np.flatnonzero(ends - starts >= _MANY).tolist():
        start, end, sentence = int(starts[place]), int(ends[place]), int(sentences_N[starts[place]])
        runs += _mixed(waiting, start, sentences_N, widths_B, rows=_RUN, positions=_POSITIONS)
        width = int(widths_B[sentence])
        rows = max(1, min(_RUN, _POSITIONS // width))
        runs += [Run(first, min(first + rows, end), sentence, width) for first in range(start, end, rows)]
        waiting = end
    return runs + _mixed(waiting, len(sentences_N), sentences_N, widths_B, rows=_RUN, positions=_POSITIONS)


def long_runs(sentences_N: npt.NDArray[np.int64], widths_B: npt.NDArray[np.int64]) -> list[Run]:
    """Runs for a GPU: as many rows together as memory allows."""
    return _mixed(0, len(sentences_N), sentences_N, widths_B, rows=len(sentences_N), positions=_LAUNCH)


def _mixed(
    start: int,
    end: int,
    sentences_N: npt.NDArray[np.int64],
    widths_B: npt.NDArray[np.int64],
    *,
    rows: int,
    positions: int,
) -> list[Run]:
    """Runs of any sentences: at most so many rows, and fewer where rows times positions would be more."""
    runs: list[Run] = []
    for first in range(start, end, rows):
        widths = widths_B[sentences_N[first : min(first + rows, end)]]
        fewer = max(1, positions // int(widths.max()))
        runs += [
            Run(first + one, first + min(one + fewer, len(widths)), None, int(widths[one : one + fewer].max()))
            for one in range(0, len(widths), fewer)
        ]
    return runs
