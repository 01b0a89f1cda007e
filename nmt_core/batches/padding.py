"""Padding sentences into tensors, and grouping sentences of similar length.

Shapes: as in ``nmt_core.layers``, the legend of all modules: B sentences, S source positions, T target positions,
L those of either side, N rows of hypotheses, K hypotheses of a sentence, V words.

Every sentence ends with ``</s>``; padding stands at the right and is marked by the mask alone.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt_core.device import on_device
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import END_ID

Ids = Sequence[int]
ON_HOST = {"on_host": True}
_MIN_BUCKET = 8  # rows


@dataclass(frozen=True)
class Padded:
    """Sentences as one tensor: ``words_BL`` (ids, padded with 0) and ``mask_BL`` (True at real positions).

    A model that reads more than ids has a class of its own that adds fields, all of them tensors (B, L, ...). Those
    with the metadata ``ON_HOST`` are on the host wherever the others are.
    """

    words_BL: Tensor
    mask_BL: Tensor

    @property
    def rows(self) -> int:
        """The number of sentences."""
        return self.words_BL.shape[0]

    @property
    def lengths(self) -> list[int]:
        """The words of every sentence, without ``</s>``."""
        lengths: list[int] = (self.mask_BL.sum(dim=1) - 1).tolist()
        return lengths

    @functools.cached_property
    def places_2N(self) -> Tensor:
        """Rows and columns of the real positions, sentence after sentence.

        On a GPU their number would have to be waited for; ``to`` takes them along instead.
        """
        return self.mask_BL.nonzero().T

    def at_places(self, values_BL: Tensor) -> Tensor:
        """The values at real positions: (B, L, ...) -> (N, ...), as ``values_BL[self.mask_BL]``."""
        rows_N, columns_N = self.places_2N
        return values_BL[rows_N, columns_N]

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
        if torch.device(device) == self.mask_BL.device:
            return self
        names = [field.name for field in dataclasses.fields(self) if field.metadata != ON_HOST]
        tensors = {name: getattr(self, name) for name in names}
        *fields, places_2N = on_device(device, *tensors.values(), self.places_2N)
        moved = dataclasses.replace(self, **dict(zip(tensors, fields, strict=True)))
        vars(moved)["places_2N"] = places_2N
        return moved


@dataclass(frozen=True)
class FactoredWords(Padded):
    """Words with factors: ``factors_BLF`` has the ids of F factors of each word, each of a vocabulary of its own."""

    factors_BLF: Tensor


@dataclass(frozen=True)
class Batch:
    """Sources and targets of the same sentences."""

    source: Padded
    target: Padded

    def to(self, device: torch.device | str) -> Batch:
        """The same on another device."""
        return Batch(self.source.to(device), self.target.to(device))


def pad(sentences: Sequence[Ids]) -> Padded:
    """Put ``</s>`` behind every sentence and pad them to one length."""
    lengths = np.fromiter((len(sentence) for sentence in sentences), dtype=np.int64, count=len(sentences)) + 1
    columns = np.arange(lengths.max(initial=1))
    mask = columns < lengths[:, None]
    words = np.full(mask.shape, END_ID, dtype=np.int64)
    flat = [word for sentence in sentences for word in sentence]
    words[columns < lengths[:, None] - 1] = flat
    return Padded(torch.from_numpy(words), torch.from_numpy(mask))


def pad_sources(sentences: Sequence[Sentence]) -> Padded:
    """The same for sentences of words, or of words with factors (``FactoredWords``), of which all have as many."""
    padded = pad(sentences)
    if not (sentences and sentences[0].factors):
        return padded
    columns = [pad(column).words_BL for column in zip(*(one.factors for one in sentences), strict=True)]
    return FactoredWords(padded.words_BL, padded.mask_BL, torch.stack(columns, dim=2))


Collate = Callable[[Sequence[Sentence]], Padded]
"""How a model makes a batch of sentences: ``pad_sources``, or more than that."""


def pad_pairs(pairs: Sequence[tuple[Ids, Ids]]) -> Batch:
    """One batch of (source ids, target ids)."""
    return Batch(pad([source for source, _ in pairs]), pad([target for _, target in pairs]))


def group_by_tokens(lengths: Sequence[int], *, limit: int) -> Iterator[list[int]]:
    """Cut indices, in the given order, into groups of at most ``limit`` padded tokens (or one sentence).

    ``lengths`` should be sorted, so that little is padded.
    """
    group: list[int] = []
    longest = 0
    for index, length in enumerate(lengths):
        if group and max(longest, length) * (len(group) + 1) > limit:
            yield group
            group, longest = [], 0
        group.append(index)
        longest = max(longest, length)
    if group:
        yield group


def group_by_length(lengths: Sequence[int], *, limit: int) -> Iterator[list[int]]:
    """Indices of all lengths, like ones together and the shortest first, cut as by ``group_by_tokens``."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for group in group_by_tokens([lengths[index] for index in order], limit=limit):
        yield [order[place] for place in group]


def bucket_rows(rows: int, like: Tensor) -> int:
    """The number of rows to compute when ``rows`` are wanted, with parameters like ``like``.

    In bfloat16 PyTorch's CPU library, oneDNN, compiles a routine for each shape, which takes milliseconds: many times
    the product itself. Batches of varying size are therefore padded to one of a few sizes, by at most an eighth.
    """
    if like.dtype != torch.bfloat16 or like.is_cuda:
        return rows
    step = max(_MIN_BUCKET, 1 << max(rows.bit_length() - 4, 0))
    return -(-rows // step) * step


def pad_rows(values: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The values followed by copies of the last one, ``rows`` in all; without a copy where they are so many.

    ``np.pad`` takes longer than a small product, also where it adds nothing.
    """
    missing = rows - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values
