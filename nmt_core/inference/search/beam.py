"""Beam search for one batch, or for any number of sentences in batches that stay full.

The sentences of a ``BeamSearch`` are searched together in one batch (``search_batch``). Where the memory of some
would be mostly padding, since a few sources are far longer than the others, they have batches of their own, so
that memory follows the source words and not the longest source.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Generic

import numpy as np
import torch

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import Padded, group_by_length
from nmt_core.inference.search.batch import LEAST_POSITIONS, MOST_PADDING, SearchBatch
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig
from nmt_core.inference.search.hypothesis import Hypothesis
from nmt_core.inference.search.predictor import Predictor
from nmt_core.inference.search.requests import Encoded, Finished, Key, Request, checked
from nmt_core.text.sentence import Sentence

_ENCODE = 4000  # padded source positions that are encoded at once
_REFILL = 0.75  # of a full batch: below, waiting sentences are let in


class BeamSearch(Generic[Key]):
    """A running search. It belongs to one thread. With ``attention`` hypotheses have their attention weights.

    What a sentence gets does not depend on what else is searched, but for rounding.
    """

    def __init__(self, predictor: Predictor, *, attention: bool = False) -> None:
        self.predictor, self.attention = predictor, attention
        self._batches: list[SearchBatch[Key]] = [SearchBatch(predictor, attention=attention)]

    @property
    def sentences(self) -> int:
        """The number of sentences searched."""
        return sum(batch.sentences for batch in self._batches)

    @property
    def rows(self) -> int:
        """The number of live hypotheses."""
        return sum(batch.rows for batch in self._batches)

    @property
    def keys(self) -> list[Key]:
        """Which sentences are searched."""
        return [key for batch in self._batches for key in batch.keys]

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, counted as ``SearchBatch.tokens`` says."""
        return sum(batch.tokens for batch in self._batches)

    @property
    def positions(self) -> int:
        """Source positions that memory is allocated for, with padding."""
        return sum(batch.positions for batch in self._batches)

    @property
    def steps_remembered(self) -> int:
        """The steps that are kept for hypotheses still searched, in the batch that has most."""
        return max(batch.steps_remembered for batch in self._batches)

    @property
    def attention_values(self) -> int:
        """The attention weights that are kept for hypotheses still searched."""
        return sum(batch.attention_values for batch in self._batches)

    def admit(self, requests: Sequence[Request[Key]]) -> None:
        """Let sentences in; they take part from the next step on. Those of like lengths are encoded together."""
        for group in group_by_length([len(request.source) + 1 for request in requests], limit=_ENCODE):
            self.insert(self.encode([requests[place] for place in group]))

    @torch.inference_mode()
    def encode(self, requests: Sequence[Request[Key]]) -> Encoded[Key]:
        """The first half of ``admit``, done for many sentences at once although they enter some at a time."""
        source = self.predictor.collate([request.source for request in requests])
        return Encoded(requests, *self.predictor.begin(source))

    def insert(self, encoded: Encoded[Key]) -> None:
        """The other half."""
        widths = encoded.widths
        batch = next((batch for batch in self._batches if batch.fits(widths)), None)
        if batch is None and len(widths) > 1 and not SearchBatch[Key](self.predictor).fits(widths):
            for part in encoded.halves():
                self.insert(part)
            return
        if batch is None:
            batch = next((batch for batch in self._batches if not batch.sentences), None)
        if batch is None:
            batch = SearchBatch(self.predictor, attention=self.attention)
            self._batches.append(batch)
        batch.insert(encoded)

    def cancel(self, keys: Collection[Key]) -> int:
        """Drop sentences; the rest is not disturbed. Returns the number of rows that became free."""
        return sum(batch.cancel(keys) for batch in self._batches)

    def step(self) -> list[Finished[Key]]:
        """Advance all live hypotheses by one word; returns the sentences that are done with that."""
        done = [finished for batch in self._batches for finished in batch.step()]
        if len(self._batches) > 1:
            self._batches = [batch for batch in self._batches if batch.sentences] or self._batches[:1]
        return done


def beam_search(
    predictor: Predictor, source: Padded, *, config: DecodingConfig, attention: bool = False
) -> list[list[Hypothesis]]:
    """The best hypotheses of every source, best first: at most ``config.nbest``, at least one.

    Raises ModelError when the predictor's numbers are not probabilities.
    """
    search: BeamSearch[int] = BeamSearch(predictor, attention=attention)
    ids = [words[:length] for words, length in zip(source.words_BL.tolist(), source.lengths, strict=True)]
    search.admit([Request(number, Sentence(sentence), config) for number, sentence in enumerate(ids)])
    found: dict[int, list[Hypothesis]] = {}
    while search.sentences:
        found.update((done.key, checked(done)) for done in search.step())
    return [found[number] for number in range(len(ids))]


def search_all(
    search: BeamSearch[Key], requests: Iterable[Request[Key]], *, batch_tokens: int
) -> Iterator[Finished[Key]]:
    """Search for any number of sentences, in the order in which they are done, with the batch kept full.

    Full means ``batch_tokens`` source positions, a sentence counted by the part of its beam that is live, and one
    of a beam wider than ``USUAL_ROWS`` as many times as it is wider, so that memory does not grow with the beam.
    Sentences of like lengths should follow one another. Raises ModelError when the predictor's numbers
    are not probabilities; that a sentence has no translation that obeys its constraints is for the caller to judge.
    """
    waiting = _Waiting(requests)
    reserve: Encoded[Key] | None = None
    while waiting or reserve is not None or search.sentences:
        free = batch_tokens - search.tokens
        while free >= (1 - _REFILL) * batch_tokens:
            if reserve is None:
                if not waiting:
                    break
                reserve = search.encode(waiting.take(batch_tokens))
            count = _fitting(reserve.requests, free, least=0 if search.sentences else 1)
            if not count:
                break
            entering, reserve = reserve.split(count)
            search.insert(entering)
            free = batch_tokens - search.tokens
        yield_point()
        for done in search.step():
            if not done.constrained:
                checked(done)
            yield done


class _Waiting(Generic[Key]):
    """The requests that were not encoded yet; false when there are none."""

    def __init__(self, requests: Iterable[Request[Key]]) -> None:
        self._requests = iter(requests)
        self._next = collections.deque(itertools.islice(self._requests, 1))

    def __bool__(self) -> bool:
        return bool(self._next)

    def take(self, tokens: int) -> list[Request[Key]]:
        """At least one, and then as many as do not exceed ``tokens``, or little, and are not mostly padding."""
        taken: list[Request[Key]] = []
        sum_widths = widest = 0
        while self._next and sum_widths < tokens:
            width = len(self._next[0].source) + 1
            widest, sum_widths = max(widest, width), sum_widths + width
            if taken and widest * (len(taken) + 1) > max(MOST_PADDING * sum_widths, LEAST_POSITIONS):
                break
            taken.append(self._next.popleft())
            self._next.extend(itertools.islice(self._requests, 1))
        return taken


def _fitting(requests: Sequence[Request[Key]], free: float, *, least: int) -> int:
    """How many of the first requests fit into so many ``free`` tokens."""
    ends = np.cumsum([(len(one.source) + 1) * max(1.0, one.config.beam / USUAL_ROWS) for one in requests])
    return max(int(np.searchsorted(ends, free, side="right")), least)
