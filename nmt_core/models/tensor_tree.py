"""Values with a row per sentence or per hypothesis, trees of tensors: a model's memory and its state."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

SOURCE_AXIS = {"source positions": True}
"""Metadata of a field whose second dimension counts source positions: ``field(metadata=SOURCE_AXIS)``."""


class _Leaf(NamedTuple):
    """A tensor of a tree, and whether its second dimension counts source positions."""

    tensor: Tensor
    positions: bool


@dataclass(frozen=True)
class TensorTree:
    """A tree of tensors whose first dimension counts rows.

    Its fields are tensors, trees, tuples of trees, or None. A tensor with source positions in its second dimension
    is declared with ``SOURCE_AXIS``.
    """

    def select(self, rows: Tensor) -> Self:
        """The given rows (int64 indices), in the given order; an index may come several times."""
        return self._with(leaf.tensor.index_select(0, rows) for leaf in self._leaves())

    def repeat(self, times: int) -> Self:
        """Every row ``times`` times, copies side by side."""
        return self._with(leaf.tensor.repeat_interleave(times, dim=0) for leaf in self._leaves())

    def join(self, others: Sequence[Self]) -> Self:
        """These rows and behind them those of the others, all with as many source positions as the longest."""
        columns = zip(*(part._leaves() for part in (self, *others)), strict=True)
        return self._with(_concatenated(column) for column in columns)

    def fit(self, rows: int, positions: int) -> Self:
        """A copy of ``rows`` rows with ``positions`` source positions: cut, or filled up with zeros."""
        return self._with(_fit(leaf, rows, positions) for leaf in self._leaves())

    def put(self, places: Tensor, rows: Self) -> None:
        """Overwrite the rows at ``places`` (int64 indices); source positions are cut or filled up with zeros."""
        for mine, theirs in zip(self._leaves(), rows._leaves(), strict=True):
            fits = mine.tensor.shape[1:] == theirs.tensor.shape[1:]
            new = theirs.tensor if fits else _fit(theirs, len(theirs.tensor), mine.tensor.shape[1])
            mine.tensor.index_copy_(0, places, new)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.example)

    @property
    def example(self) -> Tensor:
        """One of the tensors."""
        return next(self._leaves()).tensor

    def _leaves(self) -> Iterator[_Leaf]:
        for field in dataclasses.fields(self):
            for value in _each(getattr(self, field.name)):
                if isinstance(value, TensorTree):
                    yield from value._leaves()
                elif value is not None:
                    yield _Leaf(value, field.metadata == SOURCE_AXIS)

    def _with(self, tensors: Iterable[Tensor]) -> Self:
        """The same tree of other tensors."""
        left = iter(tensors)

        def changed(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(changed, value))
            return value._with(left) if isinstance(value, TensorTree) else None if value is None else next(left)

        return type(self)(*(changed(getattr(self, field.name)) for field in dataclasses.fields(self)))


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple) else (value,)


def _concatenated(leaves: Sequence[_Leaf]) -> Tensor:
    if leaves[0].positions and len({leaf.tensor.shape[1] for leaf in leaves}) > 1:
        longest = max(leaf.tensor.shape[1] for leaf in leaves)
        return torch.cat([_fit(leaf, len(leaf.tensor), longest) for leaf in leaves])
    return torch.cat([leaf.tensor for leaf in leaves])


def _fit(leaf: _Leaf, rows: int, positions: int) -> Tensor:
    tensor = leaf.tensor
    shape = [rows, *tensor.shape[1:]]
    if leaf.positions:
        shape[1] = positions
    fitted = tensor.new_zeros(shape)
    overlap = tuple(slice(min(old, new)) for old, new in zip(tensor.shape, shape, strict=True))
    fitted[overlap] = tensor[overlap]
    return fitted


class Memory(TensorTree):
    """What a model remembers of B sources."""


class State(TensorTree):
    """Where N hypotheses stand."""
