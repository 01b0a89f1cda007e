"""One batch of a continuous beam search (Bahdanau et al. 2015; Montréal's WMT'15 system), which stays full.

Sentences enter a running search whenever they may and leave it when they are done: ``insert`` gives each
a slot for its memory and one row, its empty hypothesis; ``step`` advances all live hypotheses of all
sentences by one word:

    arrange    states follow the survivors of the last step, sentence after sentence
    advance    one predictor step for all rows
    restrict   rules of length, unknown words, prefixes, repeated n-grams; guides
    select     the best continuations of each sentence, as many as its beam still has places
    finish     those that end in </s> leave the beam, which shrinks by them

Sentences have as many rows as they have live hypotheses, none is ever computed in vain. What is
small, the numbers of the candidates, is looked at on the host, once for each step; states, memories
and scores stay where the model is. What a sentence gets does not depend on what else is searched.

A sentence is done when ``beam`` hypotheses have finished, or when none that is live could still be
among the ``nbest``. At the maximum length what is left is closed with ``</s>``, at the probability
the model gives to it, so that every log-probability reported is the model's log p(y | x).

Shapes (see ``nmt_core.layers``): N rows, A sentences, K rows of the sentence that has most, C candidates
kept for each, V words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Generic

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.batches.layout import Layout, Run, short_runs
from nmt_core.batches.padding import bucket_rows, pad_rows
from nmt_core.batches.transfer import on_device, queued_to_host
from nmt_core.inference.search.allocation import RuledSentence
from nmt_core.inference.search.constraints import covered
from nmt_core.inference.search.continuations import Chosen, choose
from nmt_core.inference.search.history import BeamStep, End, History
from nmt_core.inference.search.hypothesis import NO_EXTRA, Extra, Flags, Integers, Matrix, Objects
from nmt_core.inference.search.memory_pool import MemoryPool
from nmt_core.inference.search.predictor import Prediction, Predictor
from nmt_core.inference.search.requests import Encoded, Finished, Key
from nmt_core.inference.search.state import LiveRows, Sentences, asked_of, extra_of, table_of
from nmt_core.models.interface import NO_WORD
from nmt_core.models.tensor_tree import TensorTree
from nmt_core.text.vocabulary import END_ID

MOST_PADDING = 4  # times the source positions of the sentences
LEAST_POSITIONS = 2000  # that no memory is saved for


class SearchBatch(Generic[Key]):
    """A running search of sentences whose memories stand side by side. It belongs to one thread.

    With ``attention`` hypotheses have their attention weights; a sentence's attention is kept without padding and
    until the sentence is done.
    """

    def __init__(self, predictor: Predictor, *, attention: bool = False) -> None:
        self.predictor, self.attention = predictor, attention
        self._slots = MemoryPool(predictor.device)
        self._history = History()
        self._sentences = Sentences.of([])
        self._rows = LiveRows.beginning(np.arange(0), np.arange(0), NO_WORD, [])
        self._states: list[TensorTree] = []  # together, the rows that ``parents_N`` count

    @property
    def sentences(self) -> int:
        """The number of sentences searched."""
        return len(self._sentences.slots_A)

    @property
    def rows(self) -> int:
        """The number of live hypotheses."""
        return len(self._rows.slots_N)

    @property
    def keys(self) -> list[Key]:
        """Which sentences are searched."""
        return [sentence.request.key for sentence in self._sentences.searched_A]

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, as ``Sentences`` counts them."""
        return self._sentences.tokens

    @property
    def positions(self) -> int:
        """Source positions that memory is allocated for, with padding."""
        return self._slots.positions

    @property
    def steps_remembered(self) -> int:
        """The steps that are kept for hypotheses still searched."""
        return len(self._history)

    @property
    def attention_values(self) -> int:
        """The attention weights that are kept for hypotheses still searched."""
        return sum(rows_KS.size for sentence in self._sentences.searched_A for _, rows_KS in sentence.attention)

    def fits(self, widths: Sequence[int]) -> bool:
        """Whether sentences of so many source positions may come in without most of the memory being padding."""
        tokens = int(self._sentences.widths_A.sum()) + sum(widths)
        return self._slots.positions_with(widths) <= max(MOST_PADDING * tokens, LEAST_POSITIONS)

    @torch.inference_mode()
    def insert(self, encoded: Encoded[Key]) -> None:
        """Let sentences in; they take part from the next step on. Raises ConfigError for rules that cannot be met."""
        requests = encoded.requests
        limits = [request.limit for request in requests]
        slots = self._slots.put(encoded.memory, encoded.widths)
        first = sum(part.rows for part in self._states)
        self._states.append(encoded.state)
        entering = table_of(requests, slots, limits, begun=self._history.time)
        self._sentences = self._sentences.join(entering)
        beginnings = [sentence.beginning for sentence in entering.searched_A]
        self._rows = self._rows.join(LiveRows.beginning(slots, first + np.arange(len(requests)), NO_WORD, beginnings))

    def cancel(self, keys: Collection[Key]) -> int:
        """Drop sentences; the rest is not disturbed. Returns the number of rows that became free."""
        wanted = set(keys)
        leaving = np.array([key in wanted for key in self.keys], dtype=bool)
        before = self.rows
        self._leave(leaving)
        return before - self.rows

    @torch.inference_mode()
    def step(self) -> list[Finished[Key]]:
        """Advance all live hypotheses by one word; returns the sentences that are done with that."""
        if not self.sentences:
            return []
        self._arrange()
        table, rows = self._sentences, self._rows
        advance = self._advance()
        ruled, guided = asked_of(table, rows)
        attention_NS = self._asked_attention(advance, ruled)
        found = choose(advance, table, rows, time=self._history.time, ruled=ruled, guided=guided)
        if attention_NS is not None:  # which has come with what was found
            self._note_attention(attention_NS.numpy(), ruled)
        kept_AC = found.kept(table.places_A)
        ended_AC = kept_AC & (found.words_AC == END_ID)
        entries_AC = kept_AC.cumsum().reshape(kept_AC.shape) - 1
        kept = (found.words_AC[kept_AC], found.log_probs_AC[kept_AC], found.rows_AC[kept_AC])
        self._history.add(BeamStep(*kept, rows.origins_N))
        self._finish(ended_AC, entries_AC, found, ruled)
        live_AC = kept_AC & ~ended_AC
        self._rows = LiveRows(
            np.broadcast_to(table.slots_A[:, None], live_AC.shape)[live_AC],
            found.rows_AC[live_AC],
            found.words_AC[live_AC],
            found.totals_AC[live_AC],
            entries_AC[live_AC],
            self._progress(live_AC, found, ruled),
        )
        done_A = table.decided(live_AC, found.totals_AC)
        self._find_nan(advance, rows.slots_N, done_A)
        return self._report(done_A)

    def _asked_attention(self, advance: Prediction, ruled: Sequence[RuledSentence]) -> Tensor | None:
        """Attention on its way to the host, where it is asked for."""
        if advance.attention_NS is None or not (self.attention or any(one.rules.coverage for one in ruled)):
            return None
        return queued_to_host(advance.attention_NS[: self.rows].float())

    def _note_attention(self, attention_NS: Matrix, ruled: Sequence[RuledSentence]) -> None:
        """Keep attention sentence by sentence, without padding, and count what source words had of it."""
        table = self._sentences
        if self.attention:
            bounds = np.searchsorted(self._rows.slots_N, [table.slots_A, table.slots_A + 1]).T.tolist()
            for sentence, width, (first, last) in zip(table.searched_A, table.widths_A.tolist(), bounds, strict=True):
                sentence.attention.append((first, attention_NS[first:last, :width].copy()))
        for one in ruled:
            if one.rules.coverage:
                width = int(table.widths_A[one.place]) - 1
                for row, progress in enumerate(one.progress):
                    one.progress[row] = covered(progress, attention_NS[one.first + row, :width])

    def _progress(self, live_AC: Flags, found: Chosen, ruled: Sequence[RuledSentence]) -> Objects:
        """How far the hypotheses that live on have come."""
        progress_AC = np.full(live_AC.shape, None, dtype=np.object_)
        for one in ruled:
            for column in np.flatnonzero(live_AC[one.place]).tolist():
                before = one.progress[int(found.rows_AC[one.place, column]) - one.first]
                if one.place in found.after:
                    after = replace(found.after[one.place][column], coverage_S=before.coverage_S)
                else:
                    after = one.rules.extend(before, int(found.words_AC[one.place, column]))
                progress_AC[one.place, column] = after
        for place, choice in found.guided.items():
            sentence = self._sentences.searched_A[place]
            sentence.lost = max(sentence.lost, choice.lost)
            for column in np.flatnonzero(live_AC[place]).tolist():
                progress_AC[place, column] = choice.prefixes[column]
        return progress_AC[live_AC]

    def _arrange(self) -> None:
        """Put rows in the order of their slots and their states in the order of the rows."""
        moved = self._slots.pack()
        if moved is not None:
            self._sentences = self._sentences._replace(slots_A=moved[self._sentences.slots_A])
            self._rows = self._rows._replace(slots_N=moved[self._rows.slots_N])
        if np.any(np.diff(self._rows.slots_N) < 0):
            self._rows = self._rows.take(np.argsort(self._rows.slots_N, kind="stable"))
            self._sentences = self._sentences.take(np.argsort(self._sentences.slots_A, kind="stable"))
        state = self._states[0] if len(self._states) == 1 else self._states[0].join(self._states[1:])
        parents_N = pad_rows(self._rows.parents_N, bucket_rows(self.rows, state.example))
        if len(parents_N) != state.rows or not np.array_equal(parents_N, np.arange(len(parents_N))):
            state = state.select(self._on(parents_N))
        self._states = [state]

    def _advance(self) -> Prediction:
        """One predictor step for the rows, and for some behind them that fill up a batch."""
        rows = self._states[0].rows
        slots_N = pad_rows(self._rows.slots_N, rows)
        widths = self._slots.widths
        there_N, previous_N = on_device(self.predictor.device, slots_N, pad_rows(self._rows.previous_N, rows))
        on_cpu = self.predictor.device.type == "cpu"
        runs = short_runs(slots_N, widths) if on_cpu else [Run(0, len(slots_N), None, int(widths.max()))]
        layout = Layout(there_N, runs)
        advance = self.predictor.advance(previous_N, self._states[0], self._slots.memory, layout)
        self._states = [advance.state]
        return advance

    def _finish(self, ended_AC: Flags, entries_AC: Integers, found: Chosen, ruled: Sequence[RuledSentence]) -> None:
        """Note the finished hypotheses of a step, the better first."""
        table, time = self._sentences, self._history.time - 1
        by_place = {one.place: one for one in ruled}
        for place, column in np.argwhere(ended_AC).tolist():
            sentence = table.searched_A[place]
            config = sentence.request.config
            extra = NO_EXTRA
            if (one := by_place.get(place)) is not None:
                progress = one.progress[int(found.rows_AC[place, column]) - one.first]
                extra = extra_of(one.rules, config.coverage_penalty, progress)
            elif place in found.guided:
                end = found.guided[place].prefixes[column]
                extra = Extra(end.bound, reached=end.reached)
            length = time - int(table.begun_A[place]) + 1
            score = config.ranking.normalize(float(found.totals_AC[place, column]), length=length) + extra.coverage
            sentence.ends.append(End(time, int(entries_AC[place, column])))
            sentence.extras.append(extra)
            sentence.scores.append(score)
            if len(sentence.scores) >= config.nbest:
                table.prune_thresholds_A[place] = sorted(sentence.scores, reverse=True)[config.nbest - 1]
        table.places_A[:] -= ended_AC.sum(axis=1)

    def _find_nan(self, advance: Prediction, slots_N: Integers, done_A: Flags) -> None:
        """Note, of the sentences that are done, which found nothing because the model gave no numbers."""
        done = self._sentences.take(done_A)
        for slot, sentence in zip(done.slots_A.tolist(), done.searched_A, strict=True):
            if not sentence.ends:
                rows = self._on(np.flatnonzero(slots_N == slot))
                log_probs_RV = advance.scores_NV[rows] - advance.normalizer_N[rows].unsqueeze(1)
                sentence.numbers = not bool(log_probs_RV.isnan().any())

    def _report(self, done_A: Flags) -> list[Finished[Key]]:
        sentences = self._sentences.searched_A[done_A].tolist()
        paths = iter(self._history.trace([end for sentence in sentences for end in sentence.ends]))
        reports = [sentence.best([next(paths) for _ in sentence.ends]) for sentence in sentences]
        self._leave(done_A)
        return reports

    def _leave(self, leaving_A: Flags) -> None:
        if not leaving_A.any():
            return
        slots = self._sentences.slots_A[leaving_A]
        self._rows = self._rows.take(~np.isin(self._rows.slots_N, slots))
        self._sentences = self._sentences.take(~leaving_A)
        self._slots.release(slots)
        if not self.sentences:
            self._states = []
            self._slots.pack()
        self._history.forget(int(self._sentences.begun_A.min(initial=self._history.time)))

    def _on(self, values: npt.NDArray[np.generic]) -> Tensor:
        return on_device(self.predictor.device, values)[0]
