"""The memories of sentences that come and go, side by side in tensors that stay.

A sentence gets a slot, a row of these tensors; the slots of sentences that have left are given to
others. The tensors grow by doubling and are compacted when most of their slots, or of their source
positions, have been left empty by sentences that were many, or long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.device import on_device

_EMPTY = 4  # as many times larger than needed, and the tensors are made smaller
_MOST_PADDING = 4  # times the source positions of the sentences
_FEW_POSITIONS = 2000  # whose padding does not matter


@dataclass(eq=False)
class MemoryPool:
    """``widths`` has the source positions of the sentence in every slot; 0: the slot is free.

    ``memory`` has ``longest`` source positions in each slot.
    """

    memory: TensorTree | None = None
    widths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    longest: int = 0

    def put(self, memory: TensorTree, widths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Take in sentences of the given widths; returns their slots, the first that are free."""
        taken, longest = int(np.count_nonzero(self.widths)), max(int(widths.max()), self.longest)
        needed, capacity = taken + len(widths), len(self.widths)
        if needed > capacity or longest > self.longest:
            capacity = max(needed, 2 * capacity) if needed > capacity else capacity
            self.memory = (memory if self.memory is None else self.memory).fit(capacity, longest)
            self.widths = np.pad(self.widths, (0, capacity - len(self.widths)))
            self.longest = longest
        assert self.memory is not None
        slots: npt.NDArray[np.int64] = np.flatnonzero(self.widths == 0)[: len(widths)]
        self.widths[slots] = widths
        self.memory.put(on_device(memory.example.device, slots)[0], memory)
        return slots

    def compact(self) -> npt.NDArray[np.int64] | None:
        """Make the tensors smaller where they are much too large: the new slot of each old one, or None."""
        live = np.flatnonzero(self.widths)
        rows, longest = len(live), int(self.widths.max(initial=0))
        if self.memory is None or len(self.widths) * self.longest <= _EMPTY * rows * longest:
            return None
        kept = self.memory.select(*on_device(self.memory.example.device, live)).fit(rows, longest) if rows else None
        moved = np.zeros(len(self.widths), dtype=np.int64)
        moved[live] = np.arange(rows)
        self.memory, self.widths, self.longest = kept, self.widths[live], longest
        return moved


def is_compact(widths: Sequence[int]) -> bool:
    """Whether sentences of so many source positions stand side by side without most of the memory being padding."""
    return max(widths) * len(widths) <= max(_MOST_PADDING * sum(widths), _FEW_POSITIONS)
