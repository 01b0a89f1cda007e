"""A parallel corpus as word ids, and the order in which training reads it.

Ids are flat int32 arrays, four bytes a word and eight a sentence, in files that are read by memory map.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.base.words import split_words
from nmt_core.batches.padding import Batch, Collate, Ids, group_by_tokens, pad, pad_sources
from nmt_core.text.sentence import TargetOrder
from nmt_core.training.data.stored import Collector, Sentences, TextPair


@dataclass(frozen=True)
class ParallelCorpus:
    """Sources and targets of equal number, and how many pairs were left out for their length."""

    source: Sentences
    target: Sentences
    left_out: int

    def __len__(self) -> int:
        return len(self.source)


def encode_corpus(
    pairs: Iterable[TextPair],
    source: Callable[[str], Ids],
    target: Callable[[str], Ids],
    *,
    max_length: int | None = None,
    monolingual: bool = False,
    order: TargetOrder = TargetOrder.LEFT_TO_RIGHT,
    keep_text: bool = False,
    keep_target_text: bool = False,
) -> ParallelCorpus:
    """Turn tokenised text pairs into ids; pairs with a side that is empty or longer than ``max_length`` are left out.

    ``source`` and ``target`` encode a text of their side; source texts are kept for models that read them,
    target texts for models that spell words. The sources of ``monolingual`` text are empty. Targets are in the
    ``order`` in which the model writes. Raises ConfigError when nothing is left.
    """
    sources, targets = Collector(keep_text=keep_text), Collector(keep_text=keep_target_text)
    left_out = 0
    for source_text, target_text, *_ in pairs:
        source_words, target_words = source(source_text), order.words(target(target_text))
        needed = (target_words,) if monolingual else (source_words, target_words)
        if not all(0 < len(words) <= (max_length or len(words)) for words in needed):
            left_out += 1
            continue
        sources.add(source_words, source_text)
        targets.add(target_words, " ".join(order.words(split_words(target_text))) if keep_target_text else "")
    if not len(targets):
        kind = "sentence" if monolingual else "sentence pair"
        longer = "" if max_length is None else f" or longer than {max_length} words"
        raise ConfigError(f"no {kind} is left to train on ({counted(left_out, 'was', 'were')} empty{longer})")
    return ParallelCorpus(sources.sentences(), targets.sentences(), left_out)


@dataclass(frozen=True)
class BatchPlan:
    """How an epoch is cut into minibatches, and these into the groups that make an update each.

    ``window`` minibatches are read at a time, sorted by length and cut (Bahdanau et al. 2015, appendix B.2);
    ``group`` neighbours make an update; the groups of a window come in random order. With ``tokens`` a minibatch has
    about so many words of the longer side, padding counted, instead of ``sentences`` pairs. With ``even`` the pairs of
    a group are divided again, so that its minibatches take about equally long, for processes that wait for one
    another. The corpus is shuffled again every epoch, or ``once``, as in the paper.
    """

    sentences: int = 80
    window: int = 20
    tokens: int | None = None
    seed: int = 1
    group: int = 1
    once: bool = False
    even: bool = False

    def epoch(self, corpus: ParallelCorpus, epoch: int) -> list[list[NDArray[np.int64]]]:
        """The groups of minibatches of one epoch, as indices; the same for the same seed and epoch."""
        generator = np.random.default_rng((self.seed, 0 if self.once else epoch))
        order = generator.permutation(len(corpus))
        source, target = corpus.source.lengths, corpus.target.lengths
        words = source + target + 2  # with </s> on both sides
        size = self.sentences * self.window
        updates: list[list[NDArray[np.int64]]] = []
        for start in range(0, len(order), size):
            window = order[start : start + size]
            window = window[np.lexsort((source[window], target[window]))]
            batches = self._cut(window, np.maximum(source[window], target[window]) + 1)
            groups = [batches[first : first + self.group] for first in range(0, len(batches), self.group)]
            if self.even:
                groups = [_divided_evenly(np.concatenate(group), words, self.group) for group in groups]
            updates += [groups[index] for index in generator.permutation(len(groups))]
        return updates

    def _cut(self, window: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if self.tokens is None:
            return [window[start : start + self.sentences] for start in range(0, len(window), self.sentences)]
        return [window[group] for group in group_by_tokens(lengths.tolist(), limit=self.tokens)]


def _divided_evenly(pairs: NDArray[np.int64], words: NDArray[np.int64], parts: int) -> list[NDArray[np.int64]]:
    """The pairs in at most so many minibatches, the largest with about as few words, padded, as can be."""
    pairs = pairs[np.argsort(words[pairs], kind="stable")]
    lengths = words[pairs].tolist()

    def cut(limit: int) -> list[list[int]]:
        return list(group_by_tokens(lengths, limit=limit))

    limit = bisect.bisect_left(range(lengths[-1] * len(lengths)), True, key=lambda limit: len(cut(limit)) <= parts)
    return [pairs[part] for part in cut(limit)]


def make_batch(
    corpus: ParallelCorpus, indices: Iterable[int], collate: Collate = pad_sources, collate_targets: Collate = pad
) -> Batch:
    """The pairs at ``indices`` as one batch; ``collate`` makes the batch of sources, the other that of targets."""
    chosen = list(indices)
    sources = collate([corpus.source[index] for index in chosen])
    return Batch(sources, collate_targets([corpus.target[index] for index in chosen]))


def batches_in_order(
    corpus: ParallelCorpus, *, tokens: int, collate: Collate = pad_sources, collate_targets: Collate = pad
) -> Iterator[Batch]:
    """The whole corpus sorted by length, for measuring likelihood."""
    order = np.lexsort((corpus.source.lengths, corpus.target.lengths))
    lengths = np.maximum(corpus.source.lengths, corpus.target.lengths)[order] + 1
    for group in group_by_tokens(lengths.tolist(), limit=tokens):
        yield make_batch(corpus, order[group].tolist(), collate, collate_targets)
