"""Beam search for one batch, or for any number of sentences in batches that stay full.

The sentences of a ``BeamSearch`` are searched together in one batch (``SearchBatch``). Where the memory of some
would be mostly padding, since a few sources are far longer than the others, they have batches of their own, so
that memory follows the source words and not the longest source.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np
import torch

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import group_by_length
from nmt_core.inference.search.batch import SearchBatch
from nmt_core.inference.search.config import USUAL_ROWS
from nmt_core.inference.search.memory_pool import is_compact
from nmt_core.inference.search.predictor import Predictor
from nmt_core.inference.search.requests import EncodedRequests, Finished, Key, Request

_ENCODE = 4000  # padded source positions that are encoded at once
_REFILL = 0.25  # of a full batch that is free: waiting sentences are let in


@dataclass(eq=False)
class BeamSearch(Generic[Key]):
    """A running search. It belongs to one thread. With ``attention`` hypotheses have their attention weights.

    What a sentence gets does not depend on what else is searched, but for rounding.
    """

    predictor: Predictor
    attention: bool = False
    batches: list[SearchBatch[Key]] = field(default_factory=list)

    @property
    def sentences(self) -> int:
        """The number of sentences searched."""
        return sum(len(batch.sentences_A) for batch in self.batches)

    @property
    def rows(self) -> int:
        """The number of live hypotheses."""
        return sum(len(batch.rows_N) for batch in self.batches)

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, each counted by the part of its beam that still has places.

        One whose beam is wider than ``USUAL_ROWS`` counts as many times as it is wider: rows of logits take memory.
        """
        every = (batch.sentences_A for batch in self.batches)
        parts = (own["width"] * own["places"] / np.minimum(own["beam"], USUAL_ROWS) for own in every)
        return sum(float(part.sum()) for part in parts)

    def admit(self, requests: Sequence[Request[Key]]) -> None:
        """Let sentences in; they take part from the next step on. Those of like lengths are encoded together."""
        for group in group_by_length([len(request.source) + 1 for request in requests], limit=_ENCODE):
            waiting = collections.deque(requests[place] for place in group)
            while waiting:
                self.insert(self.encode(waiting, _ENCODE))

    @torch.inference_mode()
    def encode(self, waiting: collections.deque[Request[Key]], tokens: int) -> EncodedRequests[Key]:
        """The first half of ``admit``, done for many sentences at once although they enter some at a time.

        Takes the first that wait, and as many more as do not exceed ``tokens``, or little, and are not mostly padding.
        """
        taken: list[Request[Key]] = []
        widths: list[int] = []
        while waiting and sum(widths) < tokens:
            widths.append(len(waiting[0].source) + 1)
            if not is_compact(widths):
                break
            taken.append(waiting.popleft())
        return EncodedRequests(taken, *self.predictor.begin([request.source for request in taken]))

    def insert(self, encoded: EncodedRequests[Key]) -> None:
        """The other half, for sentences that are compact."""
        widths = [len(request.source) + 1 for request in encoded.requests]
        batches = ((batch, batch.sentences_A["width"].tolist()) for batch in self.batches)
        batch = next((batch for batch, others in batches if is_compact([*others, *widths])), None)
        if batch is None:
            batch = SearchBatch(self.predictor, self.attention)
            self.batches.append(batch)
        batch.insert(encoded)

    def cancel(self, keys: Collection[Key]) -> int:
        """Drop sentences; the rest is not disturbed. Returns the number of rows that became free."""
        return sum(batch.cancel(keys) for batch in self.batches)

    def step(self) -> list[Finished[Key]]:
        """Advance all live hypotheses by one word; returns the sentences that are done with that."""
        self.batches = [batch for batch in self.batches if len(batch.sentences_A)]
        return [finished for batch in self.batches for finished in batch.step()]


def search_all(
    search: BeamSearch[Key], requests: Iterable[Request[Key]], *, batch_tokens: int
) -> Iterator[Finished[Key]]:
    """Search for any number of sentences, in the order in which they are done, with the batch kept full.

    Full means ``batch_tokens`` source positions, a sentence counted by the part of its beam that is live, and one
    of a beam wider than ``USUAL_ROWS`` as many times as it is wider, so that memory does not grow with the beam.
    Sentences of like lengths should follow one another. The caller judges those without hypotheses (``checked``).
    """
    waiting = collections.deque(requests)
    reserve: EncodedRequests[Key] | None = None
    while waiting or reserve is not None or search.sentences:
        while (waiting or reserve is not None) and (free := batch_tokens - search.tokens) >= _REFILL * batch_tokens:
            if reserve is None:
                reserve = search.encode(waiting, batch_tokens)
            entering, reserve = reserve.split(free, min_count=0 if search.sentences else 1)
            if entering is None:
                break
            search.insert(entering)
        yield_point()
        yield from search.step()
