"""The memories of sentences that come and go, side by side in tensors that stay.

A sentence gets a slot, a row of these tensors; the slots of sentences that have left are given to
others. The tensors grow by doubling and are compacted when most of their slots, or of their source
positions, have been left empty by sentences that were many, or long.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import torch

from nmt_core.batches.transfer import on_device
from nmt_core.inference.search.hypothesis import Integers
from nmt_core.models.tensor_tree import TensorTree

_EMPTY = 4  # as many times larger than needed, and the tensors are made smaller
_MOST_PADDING = 4  # times the source positions of the sentences
_FEW_POSITIONS = 2000  # whose padding does not matter


class MemoryPool:
    """``widths`` has the source positions of the sentence in every slot; 0: the slot is free."""

    def __init__(self, device: torch.device) -> None:
        self.memory: TensorTree | None = None
        self.widths: Integers = np.zeros(0, dtype=np.int64)
        self._device = device
        self._positions = 0
        self._free: list[int] = []

    @property
    def positions(self) -> int:
        """The source positions that the tensors hold, with padding."""
        return len(self.widths) * self._positions

    def put(self, memory: TensorTree, widths: Integers) -> Integers:
        """Take in sentences of the given widths; returns their slots."""
        self._enlarge(len(widths), int(widths.max()), like=memory)
        slots = np.array([heapq.heappop(self._free) for _ in widths], dtype=np.int64)
        self.widths[slots] = widths
        assert self.memory is not None
        self.memory.put(on_device(self._device, slots)[0], memory)
        return slots

    def release(self, slots: Integers) -> None:
        """Free the slots of sentences that leave."""
        self.widths[slots] = 0
        for slot in slots.tolist():
            heapq.heappush(self._free, slot)

    def compact(self) -> Integers | None:
        """Make the tensors smaller where they are much too large: the new slot of each old one, or None."""
        live = np.flatnonzero(self.widths)
        rows, positions = len(live), int(self.widths.max(initial=0))
        if self.memory is None or len(self.widths) * self._positions <= _EMPTY * rows * positions:
            return None
        kept = None if not rows else self.memory.select(*on_device(self._device, live))
        self.memory = None if kept is None else kept.fit(rows, positions)
        moved = np.zeros(len(self.widths), dtype=np.int64)
        moved[live] = np.arange(rows)
        self.widths, self._positions, self._free = self.widths[live], positions, []
        return moved

    def _enlarge(self, rows: int, positions: int, *, like: TensorTree) -> None:
        """Make room for so many more sentences, and for the positions of the longest."""
        slots = len(self.widths)
        needed = slots + max(rows - len(self._free), 0)
        capacity = slots if needed == slots else max(needed, 2 * slots)
        if capacity > slots or positions > self._positions:
            self._positions = max(positions, self._positions)
            self.memory = (like if self.memory is None else self.memory).fit(capacity, self._positions)
            self.widths = np.pad(self.widths, (0, capacity - slots))
            self._free += range(slots, capacity)
            heapq.heapify(self._free)


def is_compact(widths: Sequence[int]) -> bool:
    """Whether sentences of so many source positions stand side by side without most of the memory being padding."""
    return max(widths) * len(widths) <= max(_MOST_PADDING * sum(widths), _FEW_POSITIONS)
