"""A corpus cut into partitions with few distinct target words (Jean et al. 2015, section 3.2).

Partitions follow one another in the order of training: each takes minibatches as long as their
distinct target words are at most ``words``. Inside a partition a model needs no other words, so it
can be trained as a small model whose words are renumbered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.batches.padding import Batch, Padded
from nmt_core.text.vocabulary import SPECIAL_WORDS
from nmt_core.training.data.corpus import ParallelCorpus
from nmt_core.training.data.stored import Sentences

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class WordChoice:
    """Some words of a vocabulary, as ascending ids among which the special words are: new id = place."""

    words_C: Tensor

    def local(self, padded: Padded) -> Padded:
        """Sentences of these words with the new ids."""
        return dataclasses.replace(padded, words_BL=torch.searchsorted(self.words_C, padded.words_BL))


@dataclass(frozen=True)
class Partition:
    """Minibatches as indices, the first of which is number ``first`` of its epoch, and the words they need."""

    first: int
    batches: Sequence[Indices]
    source: WordChoice
    target: WordChoice

    def local(self, batch: Batch) -> Batch:
        """One of its minibatches with the new ids."""
        source, target = self.source.local(batch.source), self.target.local(batch.target)
        return dataclasses.replace(batch, source=source, target=target)


def cut_into_partitions(
    corpus: ParallelCorpus, batches: Sequence[Indices], *, words: int, source_words: int, target_words: int
) -> Iterator[Partition]:
    """The partitions of an epoch, in order; ``source_words`` and ``target_words`` are the vocabularies' sizes.

    A partition has exactly ``words`` target words (or all): where its sentences need fewer, the most
    frequent others, which are the first of the vocabulary, join in as negatives. Its source words are those
    that occur, filled up likewise. Raises ConfigError when one minibatch needs more than ``words``.
    """
    partition_of = np.full(target_words, -1, dtype=np.int64)
    partition_of[: len(SPECIAL_WORDS)] = 0
    number, first, used = 0, 0, len(SPECIAL_WORDS)
    for place, indices in enumerate(batches):
        distinct = np.unique(_words(corpus.target, indices))
        new = distinct[partition_of[distinct] != number]
        if used + len(new) > words and place > first:
            yield _partition(corpus, batches, first, place, partition_of == number, words, source_words)
            number, first, used = number + 1, place, len(SPECIAL_WORDS)
            partition_of[: len(SPECIAL_WORDS)] = number
            new = distinct[partition_of[distinct] != number]
        if used + len(new) > words:
            raise ConfigError(
                f"training.partition_words {words}: a minibatch of {counted(len(indices), 'pair')} has"
                f" {used + len(new)} distinct target words; give at least that many, or make minibatches smaller"
            )
        partition_of[new] = number
        used += len(new)
    if first < len(batches):
        yield _partition(corpus, batches, first, len(batches), partition_of == number, words, source_words)


def _partition(
    corpus: ParallelCorpus,
    batches: Sequence[Indices],
    first: int,
    end: int,
    needed_V: NDArray[np.bool_],
    words: int,
    source_words: int,
) -> Partition:
    source_V = np.zeros(source_words, dtype=bool)
    source_V[: len(SPECIAL_WORDS)] = True
    for indices in batches[first:end]:
        source_V[_words(corpus.source, indices)] = True
    return Partition(first, batches[first:end], _filled_up(source_V, words), _filled_up(needed_V, words))


def _filled_up(needed_V: NDArray[np.bool_], words: int) -> WordChoice:
    """The needed words and the first of the others, ``words`` in all if there are so many."""
    chosen_V = needed_V.copy()
    chosen_V[np.flatnonzero(~needed_V)[: max(words - int(needed_V.sum()), 0)]] = True
    return WordChoice(torch.from_numpy(np.flatnonzero(chosen_V)))


def _words(side: Sentences, indices: Indices) -> NDArray[np.int32]:
    """All the words of some sentences, one after the other."""
    starts = side.starts[indices]
    lengths = side.starts[indices + 1] - starts
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    words: NDArray[np.int32] = side.ids[np.repeat(starts, lengths) + offsets]
    return words
