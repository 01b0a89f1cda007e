"""One batch of a continuous beam search (Bahdanau et al. 2015; Montréal's WMT'15 system), which stays full.

Sentences enter a running search at any time and leave it when they are done: ``insert`` gives each
a slot for its memory and one row, its empty hypothesis; ``step`` advances all live hypotheses of all
sentences by one word:

    arrange    states follow the continuations of the last step, sentence after sentence
    predict    one step of the predictor for all rows
    select     the best continuations of each sentence, as many as its beam still has places
    finish     those that end in </s> leave the beam, which shrinks by them
    extend     the others are the rows of the next step

Sentences have as many rows as they have live hypotheses. The numbers of the continuations, which are small, are read
on the host, once a step; states, memories and scores stay on the device of the model. The translations of a
sentence do not depend on what else is searched.

A sentence is done when ``beam`` hypotheses have finished, or when none that is live could still be
among the ``nbest``. At the maximum length what is left is closed with ``</s>``, at the probability
the model gives to it, so that every log-probability reported is the model's log p(y | x).

Shapes (see ``nmt_core.layers``): N rows, A sentences, C continuations of each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic

import numpy as np
import torch

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import bucket_rows, pad_rows
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.device import on_device, queued_to_host
from nmt_core.inference.search.continuations import select_continuations
from nmt_core.inference.search.memory_pool import MemoryPool
from nmt_core.inference.search.predictor import Prediction, Predictor
from nmt_core.inference.search.requests import EncodedRequests, Finished, Flags, Key, Matrix
from nmt_core.inference.search.state import (
    ROW,
    SENTENCE,
    Continuations,
    Records,
    SearchedSentence,
    are_done,
    enter,
    extended_rows,
    row_ranges,
)
from nmt_core.text.vocabulary import END_ID


@dataclass(eq=False)
class SearchBatch(Generic[Key]):
    """A running search of sentences whose memories stand side by side. It belongs to one thread.

    With ``attention`` hypotheses have their attention weights; a sentence's attention is kept without padding and
    until the sentence is done.
    """

    predictor: Predictor
    attention: bool = False
    memory: MemoryPool = field(default_factory=MemoryPool)
    sentences_A: Records = field(default_factory=lambda: np.empty(0, dtype=SENTENCE))
    rows_N: Records = field(default_factory=lambda: np.empty(0, dtype=ROW))
    _states: list[TensorTree] = field(default_factory=list)  # the parents of the rows, counted through all of these

    @torch.inference_mode()
    def insert(self, encoded: EncodedRequests[Key]) -> None:
        """Let sentences in; they take part from the next step on. Raises ConfigError for rules that cannot be met."""
        parent = sum(part.rows for part in self._states)
        sentences_B, rows_B = enter(encoded.requests, parent=parent)
        sentences_B["slot"] = rows_B["slot"] = self.memory.put(encoded.memory, sentences_B["width"])
        self._states.append(encoded.state)
        self.sentences_A = np.concatenate([self.sentences_A, sentences_B])
        self.rows_N = np.concatenate([self.rows_N, rows_B])

    def cancel(self, keys: Collection[Key]) -> int:
        """Drop sentences; the rest is not disturbed. Returns the number of rows that became free."""
        leaving_A = np.array([one.request.key in keys for one in self.sentences_A["searched"]], dtype=np.bool_)
        leaving_N = np.isin(self.rows_N["slot"], self.sentences_A["slot"][leaving_A])
        self.rows_N = self.rows_N[~leaving_N]
        self._leave(leaving_A)
        return int(leaving_N.sum())

    @torch.inference_mode()
    def step(self) -> list[Finished[Key]]:
        """Advance all live hypotheses by one word; returns the sentences that are done with that."""
        if not len(self.sentences_A):
            return []
        self._arrange()
        prediction = self._predict()
        attention_NS = None
        if self.attention and prediction.attention_NS is not None:
            attention_NS = queued_to_host(prediction.attention_NS[: len(self.rows_N)].float())
        selected = select_continuations(prediction, self.sentences_A, self.rows_N)
        if attention_NS is not None:  # it has come with the continuations
            self._keep_attention(attention_NS.numpy())
        columns_C = np.arange(selected.totals_AC.shape[1])
        kept_AC = (columns_C < self.sentences_A["places"][:, None]) & (selected.totals_AC > -np.inf)
        ended_AC = kept_AC & (selected.words_AC == END_ID)
        self._finish(selected, ended_AC)
        live_AC = kept_AC & ~ended_AC
        done_A = are_done(self.sentences_A, live_AC, selected)
        reports = [self._report(place, prediction) for place in np.flatnonzero(done_A).tolist()]
        live_AC &= ~done_A[:, None]
        self.rows_N = extended_rows(self.rows_N, selected, live_AC)
        self._leave(done_A)
        return reports

    def _arrange(self) -> None:
        """Put rows in the order of their slots and their states in the order of the rows."""
        moved = self.memory.compact()
        if moved is not None:
            for records in (self.sentences_A, self.rows_N):
                records["slot"] = moved[records["slot"]]
        if np.any(np.diff(self.rows_N["slot"]) < 0):
            self.rows_N = self.rows_N[np.argsort(self.rows_N["slot"], kind="stable")]
            self.sentences_A = self.sentences_A[np.argsort(self.sentences_A["slot"], kind="stable")]
        state = self._states[0] if len(self._states) == 1 else self._states[0].join(self._states[1:])
        parents_N = pad_rows(self.rows_N["parent"], bucket_rows(len(self.rows_N), state.example))
        if len(parents_N) != state.rows or not np.array_equal(parents_N, np.arange(len(parents_N))):
            state = state.select(*on_device(self.predictor.device, parents_N))
        self._states = [state]

    def _predict(self) -> Prediction:
        """One step of the predictor for the rows, and for some behind them that fill up a batch."""
        rows, widths = self._states[0].rows, self.memory.widths
        slots_N = pad_rows(self.rows_N["slot"], rows)
        there_N, previous_N = on_device(self.predictor.device, slots_N, pad_rows(self.rows_N["previous"], rows))
        layout = Layout(there_N, slots_N, widths)
        prediction = self.predictor.advance(previous_N, self._states[0], self.memory.memory, layout)
        self._states = [prediction.state]
        return prediction

    def _keep_attention(self, attention_NS: Matrix) -> None:
        """Keep attention sentence by sentence, without padding."""
        ranges = row_ranges(self.sentences_A, self.rows_N).tolist()
        for sentence, (first, last) in zip(self.sentences_A, ranges, strict=True):
            kept_KS = attention_NS[first:last, : sentence["width"]].copy()
            sentence["searched"].attention.append((first, kept_KS))

    def _finish(self, selected: Continuations, ended_AC: Flags) -> None:
        """Finish the hypotheses that end, the better first."""
        self.sentences_A["length"] += 1
        self.sentences_A["places"] -= ended_AC.sum(axis=1)
        for place, column in np.argwhere(ended_AC).tolist():
            row = int(selected.rows_AC[place, column])
            path = (self.rows_N["path"][row], END_ID, float(selected.log_probs_AC[place, column]), row)
            progress = None if selected.after_AC is None else selected.after_AC[place, column]
            searched = self.sentences_A["searched"][place]
            self.sentences_A["threshold"][place] = searched.finish(path, progress)

    def _report(self, place: int, prediction: Prediction) -> Finished[Key]:
        """What was found for a sentence."""
        searched: SearchedSentence[Key] = self.sentences_A["searched"][place]
        best = searched.finished[: searched.request.search.nbest]
        constrained = searched.rules is not None
        if constrained and not searched.finished:
            first, last = row_ranges(self.sentences_A, self.rows_N)[place].tolist()
            constrained = not bool(prediction.log_probs_NV[first:last].isnan().any())
        return Finished(searched.request, best, constrained)

    def _leave(self, leaving_A: Flags) -> None:
        """Drop sentences that have no rows."""
        if leaving_A.any():
            self.memory.widths[self.sentences_A["slot"][leaving_A]] = 0
            self.sentences_A = self.sentences_A[~leaving_A]
        if not len(self.sentences_A):
            self._states = []
            self.memory.compact()
