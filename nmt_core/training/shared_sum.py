"""The sum of the vectors of processes of one machine, in memory that all of them have mapped.

Each writes its vector there, adds one part of all, and reads the whole sum. The additions are those of
``Ranks.total``, but no vector goes over a network interface, which takes several times as much processor time.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

from nmt_core.training.ranks import OrderedSum, Ranks


def can_share(ranks: Ranks) -> bool:
    """Whether there are several processes of one machine, and its system (Linux) has files in memory without names."""
    return ranks.size > 1 and ranks.one_machine and hasattr(os, "memfd_create")


class SharedSum:
    """Of vectors on the CPU. All processes of ``ranks``, on one machine, call the same methods in the same order."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._buffers = torch.empty(ranks.size, 0)

    def buffer(self, length: int, dtype: torch.dtype) -> Tensor:
        """Where this process writes its vector of so many numbers; no sum is needed any more. Raises LostProcess."""
        self._ranks.wait_for_all()  # they have used the last sum
        if self._buffers.dtype != dtype or self._buffers.shape[1] < length:
            self._buffers = self._mapped(length, dtype)
        return self._buffers[self._ranks.rank, :length]

    def total(self, length: int) -> Tensor:
        """The sum of the vectors in the buffers; all processes read the same one, and none may change it.

        Raises LostProcess.
        """
        part = self._ranks.share(length)
        added = OrderedSum(self._ranks.size)
        self._ranks.wait_for_all()  # they have written
        for buffer in self._buffers:
            added.add(buffer[part.start : part.stop])
        added.finish()
        self._ranks.wait_for_all()  # they have added; the first buffer has the sum
        return self._buffers[0, :length]

    def _mapped(self, length: int, dtype: torch.dtype) -> Tensor:
        """A buffer for each process, in a file in memory that has no name and ends with the last of them."""
        size = self._ranks.size * length
        made: list[int] = []

        def make() -> str:
            made.append(os.memfd_create("hybridmt"))
            os.posix_fallocate(made[0], 0, size * dtype.itemsize)
            return f"/proc/{os.getpid()}/fd/{made[0]}"

        try:
            buffers = torch.from_file(self._ranks.from_first(make), shared=True, size=size, dtype=dtype)
            self._ranks.wait_for_all()  # the first has its file open until all others have mapped it
        finally:
            for descriptor in made:
                os.close(descriptor)
        return buffers.view(self._ranks.size, length)
