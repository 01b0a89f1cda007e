"""Whether a pair came before, by 8-byte hashes of what was prepared.

Hashes stand in sorted arrays of which each is at least twice as long as the next: 8 bytes a
pair, 16 while arrays are merged, and a handful of binary searches to look a chunk up. Two different
pairs among n share a hash with a probability of n^2 / 2^65: one in 370,000 for ten million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


def hash_of(lines: Sequence[str]) -> int:
    """Eight bytes of BLAKE2b of the sides of a pair."""
    digest = hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Seen:
    """The hashes that came before."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def first_times(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of ``hashes`` are new, only the first of equal ones; all are remembered."""
        distinct, places = np.unique(hashes, return_index=True)
        new = ~np.logical_or.reduce([np.zeros(len(distinct), bool), *(_are_in(run, distinct) for run in self._runs)])
        self._add(distinct[new])
        first = np.zeros(len(hashes), bool)
        first[places[new]] = True
        return first

    def _add(self, run: Hashes) -> None:
        """Merge the new run with all that are less than twice as long."""
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")
        if len(run):
            self._runs.append(run)


def _are_in(run: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(run, wanted)
    return np.equal(run[np.minimum(places, len(run) - 1)], wanted)
