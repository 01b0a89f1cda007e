"""The memories of sentences that come and go, side by side in tensors that stay.

A sentence gets a slot, a row of these tensors; the slots of sentences that have left are given to
others. The tensors grow by doubling and are packed anew when most of their slots, or of their source
positions, have been left empty by sentences that were many, or long.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from nmt_core.batches.transfer import on_device
from nmt_core.models.tensor_tree import TensorTree

Integers = npt.NDArray[np.int64]

_EMPTY = 4  # as many times larger than needed, and the tensors are made smaller


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
        """The source positions that the tensors hold."""
        return len(self.widths) * self._positions

    def positions_with(self, widths: Sequence[int]) -> int:
        """The source positions, with padding, of the sentences that are here and of some more."""
        rows = int(np.count_nonzero(self.widths)) + len(widths)
        return rows * max(int(self.widths.max(initial=0)), *widths)

    def put(self, memory: TensorTree, widths: Sequence[int]) -> Integers:
        """Take in sentences of the given widths; returns their slots."""
        self._enlarge(len(widths), max(widths), like=memory)
        slots = np.array([heapq.heappop(self._free) for _ in widths], dtype=np.int64)
        self.widths[slots] = widths
        assert self.memory is not None
        self.memory.put(on_device(self._device, slots)[0], memory)
        return slots

    def release(self, slots: Integers) -> None:
        """Let sentences go."""
        self.widths[slots] = 0
        for slot in slots.tolist():
            heapq.heappush(self._free, slot)

    def pack(self) -> Integers | None:
        """Make the tensors smaller where they are much too large: the new slot of each old one, or None."""
        live = np.flatnonzero(self.widths)
        rows, positions = len(live), int(self.widths.max(initial=0))
        if self.memory is None or self.positions <= _EMPTY * rows * positions:
            return None
        kept = None if not rows else self.memory.select(*on_device(self._device, live))
        self.memory = None if kept is None else kept.fit(rows, positions)
        moved = np.zeros(len(self.widths), dtype=np.int64)
        moved[live] = np.arange(rows)
        self.widths, self._positions, self._free = self.widths[live], positions, []
        return moved

    def _enlarge(self, rows: int, positions: int, *, like: TensorTree) -> None:
        slots = len(self.widths)
        needed = slots + max(rows - len(self._free), 0)
        capacity = slots if needed == slots else max(needed, 2 * slots)
        if capacity > slots or positions > self._positions:
            self._positions = max(positions, self._positions)
            self.memory = (like if self.memory is None else self.memory).fit(capacity, self._positions)
            self.widths = np.pad(self.widths, (0, capacity - slots))
            self._free += range(slots, capacity)
            heapq.heapify(self._free)
