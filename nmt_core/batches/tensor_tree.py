"""Values with a row per sentence or per hypothesis, trees of tensors: a model's memory and its state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor

SOURCE_AXIS = {"source positions": True}
"""Metadata of a field whose second dimension counts source positions: ``field(metadata=SOURCE_AXIS)``."""


@dataclass(frozen=True)
class TensorTree:
    """A tree of tensors whose first dimension counts rows.

    Its fields are tensors, trees, tuples of trees, or None. A tensor with source positions in its second dimension
    is declared with ``SOURCE_AXIS``.
    """

    def select(self, rows: Tensor) -> Self:
        """The given rows (int64 indices), in the given order; an index may come several times."""
        return cast(Self, _map(lambda _, tensor: tensor.index_select(0, rows), self))

    def repeat(self, times: int) -> Self:
        """Every row ``times`` times, copies side by side."""
        return cast(Self, _map(lambda _, tensor: tensor.repeat_interleave(times, dim=0), self))

    def join(self, others: Sequence[Self]) -> Self:
        """These rows and behind them those of the others, all with as many source positions as the longest."""
        return cast(Self, _map(_concatenated, self, *others))

    def fit(self, rows: int, positions: int) -> Self:
        """A copy of ``rows`` rows with ``positions`` source positions: cut, or filled up with zeros."""
        return cast(Self, _map(lambda has_positions, one: _fit(one, rows, positions if has_positions else None), self))

    def put(self, places: Tensor, rows: Self) -> None:
        """Overwrite the rows at ``places`` (int64 indices); source positions are cut or filled up with zeros."""

        def overwrite(_: bool, mine: Tensor, theirs: Tensor) -> Tensor:
            fits = mine.shape[1:] == theirs.shape[1:]
            return mine.index_copy_(0, places, theirs if fits else _fit(theirs, len(theirs), mine.shape[1]))

        _map(overwrite, self, rows)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.example)

    @property
    def example(self) -> Tensor:
        """One of the tensors."""
        found = [value for field in dataclasses.fields(self) if (value := getattr(self, field.name)) is not None]
        one = found[0][0] if isinstance(found[0], tuple) else found[0]
        return one.example if isinstance(one, TensorTree) else one


def _map(work: Callable[..., Tensor], first: Any, *others: Any, has_positions: bool = False) -> Any:
    """What ``work`` makes of each tensor of the first tree, tuple or tensor, and of those at its place in the others.

    It is called with whether the second dimension counts source positions, and the tensors.
    """
    match first:
        case None:
            return None
        case tuple():
            columns = zip(first, *others, strict=True)
            return tuple(_map(work, *column, has_positions=has_positions) for column in columns)
        case TensorTree():
            fields = []
            for field in dataclasses.fields(first):
                column = (getattr(tree, field.name) for tree in (first, *others))
                fields.append(_map(work, *column, has_positions=field.metadata == SOURCE_AXIS))
            return type(first)(*fields)
        case _:
            return work(has_positions, first, *others)


def _concatenated(has_positions: bool, *tensors: Tensor) -> Tensor:
    if has_positions and len({tensor.shape[1] for tensor in tensors}) > 1:
        longest = max(tensor.shape[1] for tensor in tensors)
        tensors = tuple(_fit(tensor, len(tensor), longest) for tensor in tensors)
    return torch.cat(tensors)


def _fit(tensor: Tensor, rows: int, positions: int | None) -> Tensor:
    """A copy of another size; without ``positions`` the second dimension stays."""
    shape = [rows, *tensor.shape[1:]]
    if positions is not None:
        shape[1] = positions
    fitted = tensor.new_zeros(shape)
    overlap = tuple(slice(min(old, new)) for old, new in zip(tensor.shape, shape, strict=True))
    fitted[overlap] = tensor[overlap]
    return fitted


class Memory(TensorTree):
    """What a model remembers of B sources."""


class State(TensorTree):
    """Where N hypotheses stand."""
