"""Memories of sentences in tensors that are used again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from nmt_core.inference.search.ensemble import EnsembleState
from nmt_core.inference.search.memory_pool import MemoryPool
from nmt_core.models.tensor_tree import SOURCE_AXIS, Memory


@dataclass(frozen=True)
class Sources(Memory):
    """Something for every position, and something as wide for the whole."""

    values_BSX: Tensor = field(metadata=SOURCE_AXIS)
    mask_BS: Tensor = field(metadata=SOURCE_AXIS)
    whole_BH: Tensor
    nothing_B: Tensor | None = None


def sources(*lengths: int, first: int = 1) -> EnsembleState:
    """Sentences number ``first`` and so on; every number in them is the sentence's."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    numbers = torch.arange(first, first + len(lengths)).unsqueeze(1)
    return EnsembleState((Sources((mask * numbers).unsqueeze(2).repeat(1, 1, 3), mask, numbers.repeat(1, 4)),))


def inside(pool: MemoryPool, slot: int) -> tuple[list[int], int]:
    """The numbers at the positions of a sentence, padding cut off, and the number of the whole."""
    assert isinstance(pool.memory, EnsembleState)
    (memory,) = pool.memory.members
    assert isinstance(memory, Sources)
    assert memory.whole_BH.shape[1] == 4
    assert memory.mask_BS[slot].sum() == pool.widths[slot]
    return memory.values_BSX[slot, memory.mask_BS[slot], 0].tolist(), int(memory.whole_BH[slot, 0])


def test_a_slot_left_is_given_to_another() -> None:
    pool = MemoryPool()
    first = pool.put(sources(4, 2, 3), np.array([4, 2, 3]))
    assert first.tolist() == [0, 1, 2]
    pool.widths[0] = 0
    second = pool.put(sources(2, 6, first=4), np.array([2, 6]))  # one more than was free, and a longer one
    assert second[0] == 0
    assert [inside(pool, slot) for slot in (0, 1, 2, int(second[1]))] == [
        ([4, 4], 4), ([2, 2], 2), ([3, 3, 3], 3), ([5] * 6, 5)]  # fmt: skip
    assert pool.widths[[0, 1, 2, second[1]]].tolist() == [2, 2, 3, 6]


def test_memory_is_given_back() -> None:
    pool = MemoryPool()
    pool.put(sources(50, *[3] * 9), np.array([50, *[3] * 9]))
    assert pool.compact() is None
    pool.widths[0] = 0
    moved = pool.compact()  # the long one has gone
    assert moved is not None
    assert moved[1:].tolist() == list(range(9))
    assert pool.memory is not None
    assert pool.memory.members[0].mask_BS.shape == (9, 3)
    assert inside(pool, 8) == ([10] * 3, 10)
    pool.widths[1:9] = 0
    assert pool.compact() is not None
    assert pool.memory.rows == 1
    pool.widths[0] = 0
    pool.compact()
    assert pool.memory is None
    assert pool.put(sources(2), np.array([2])).tolist() == [0]


def test_rows_are_joined() -> None:
    joined = sources(2, 3).join([sources(3, 1, first=3)])
    assert joined.rows == 4
    assert joined.members[0].whole_BH[:, 0].tolist() == [1, 2, 3, 4]
