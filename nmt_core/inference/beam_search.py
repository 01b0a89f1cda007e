"""Continuous beam search (Bahdanau et al. 2015; Montréal's WMT'15 system) in a batch that stays full.

Sentences enter a running search whenever they may and leave it when they are done: ``admit`` encodes
some and gives each a slot for its memory and one row, its empty hypothesis; ``step`` advances all live
hypotheses of all sentences by one word:

    arrange    states follow the survivors of the last step, sentence after sentence
    advance    one predictor step for all rows
    restrict   rules of length and unknown words
    select     the best continuations of each sentence, as many as its beam still has places
    finish     those that end in </s> leave the beam, which shrinks by them

Sentences have as many rows as they have live hypotheses, none is ever computed in vain. What is
small, the numbers of the candidates, is looked at on the host, once for each step; states, memories
and scores stay where the model is. What a sentence gets does not depend on what else is searched.

A sentence is done when ``beam`` hypotheses have finished, or when none that is live could still be
among the ``nbest``. At the maximum length what is left is closed with ``</s>``, at the probability
the model gives to it, so that every log-probability reported is the model's log p(y | x).

Shapes: N rows, A sentences, K rows of the sentence that has most, C candidates kept for each, V words.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from nmt_core.config import Config
from nmt_core.data.batching import Ids, Padded, group_by_tokens, pad
from nmt_core.data.layout import Layout, Run, lay_out
from nmt_core.data.sizes import filled
from nmt_core.errors import ModelError
from nmt_core.inference.backtrace import End, History, Moment
from nmt_core.inference.candidates import choose
from nmt_core.inference.hypothesis import Hypothesis, make_hypothesis, normalize_by_length
from nmt_core.inference.predictor import Advance, Predictor
from nmt_core.inference.search_tables import Flags, Floats, Integers, RowTable, SentenceTable
from nmt_core.inference.slots import Slots
from nmt_core.models.interface import NO_WORD, Rows
from nmt_core.text.vocabulary import END_ID

Key = TypeVar("Key", bound=Hashable)

_MARGIN = 1e-4  # of a score: more than rounding may be wrong
_ENCODE = 4000  # padded source positions that are encoded at once
_REFILL = 0.75  # of a full batch: below, waiting sentences are let in


class DecodingConfig(Config):
    """How to search.

    ``beam`` hypotheses are followed and the ``nbest`` best returned, ranked by
    log p / length ** ``length_normalization`` (``</s>`` counts; 0 ranks by log p). A translation
    has between ``min_length`` and ``max_length_ratio`` * source words + ``max_length_extra`` words.
    """

    beam: int = Field(default=12, ge=1)
    nbest: int = Field(default=1, ge=1)
    length_normalization: float = Field(default=1.0, ge=0.0)
    max_length_ratio: float = Field(default=2.0, ge=0.0)
    max_length_extra: int = Field(default=10, ge=0)
    min_length: int = Field(default=0, ge=0)
    forbid_unknown: bool = False


class Request(NamedTuple, Generic[Key]):
    """A sentence to translate: any ``key`` to know it by, its source ids without ``</s>``, and how to search."""

    key: Key
    source: Ids
    config: DecodingConfig


class Encoded(NamedTuple, Generic[Key]):
    """Sentences that may enter a search."""

    requests: Sequence[Request[Key]]
    memory: Rows
    state: Rows

    @torch.inference_mode()
    def split(self, count: int) -> tuple[Encoded[Key], Encoded[Key] | None]:
        """The first ``count`` of them, and the others."""
        if count >= len(self.requests):
            return self, None
        everything = torch.arange(len(self.requests), device=self.state.example.device)
        first, rest = (
            Encoded(requests, self.memory.select(chosen), self.state.select(chosen))
            for requests, chosen in (
                (self.requests[:count], everything[:count]),
                (self.requests[count:], everything[count:]),
            )
        )
        return first, rest


class Finished(NamedTuple, Generic[Key]):
    """The best hypotheses of a sentence, best first: at most ``nbest``.

    None at all means that the model's numbers are not probabilities.
    """

    key: Key
    hypotheses: list[Hypothesis]


def length_limits(source: Padded, *, ratio: float, extra: int, least: int = 0) -> list[int]:
    """The most words each translation may have, from the number of its source words."""
    words = (source.mask_BL.sum(dim=1) - 1).tolist()
    return [_limit(count, ratio=ratio, extra=extra, least=least) for count in words]


def _limit(words: int, *, ratio: float, extra: int, least: int) -> int:
    return max(int(ratio * words) + extra, least)


def beam_search(
    predictor: Predictor, source: Padded, *, config: DecodingConfig, attention: bool = False
) -> list[list[Hypothesis]]:
    """The best hypotheses of every source, best first: at most ``config.nbest``, at least one.

    Raises ModelError when the predictor's numbers are not probabilities.
    """
    search: BeamSearch[int] = BeamSearch(predictor, attention=attention)
    ids = [words[mask][:-1].tolist() for words, mask in zip(source.words_BL.cpu(), source.mask_BL.cpu(), strict=True)]
    search.admit([Request(number, sentence, config) for number, sentence in enumerate(ids)])
    found: dict[int, list[Hypothesis]] = {}
    while search.sentences:
        found.update((done.key, checked(done)) for done in search.step())
    return [found[number] for number in range(len(ids))]


def search_all(
    search: BeamSearch[Key], requests: Iterable[Request[Key]], *, batch_tokens: int
) -> Iterator[Finished[Key]]:
    """Search for any number of sentences, in the order in which they are done, with the batch kept full.

    Full means ``batch_tokens`` source positions, a sentence counted by the part of its beam that is live.
    Sentences of like lengths should follow one another. Raises ModelError when the predictor's numbers
    are not probabilities.
    """
    waiting = iter(requests)
    reserve: Encoded[Key] | None = None
    more = True
    while more or reserve is not None or search.sentences:
        room = batch_tokens - search.tokens
        while room >= (1 - _REFILL) * batch_tokens:
            if reserve is None:
                upcoming = list(_take(waiting, batch_tokens))
                if not (more := bool(upcoming)):
                    break
                reserve = search.encode(upcoming)
            count = _fitting(reserve.requests, room, least=0 if search.sentences else 1)
            if not count:
                break
            entering, reserve = reserve.split(count)
            search.enter(entering)
            room = batch_tokens - search.tokens
        for done in search.step():
            checked(done)
            yield done


def _take(waiting: Iterator[Request[Key]], tokens: int) -> Iterator[Request[Key]]:
    """At least one, if there is one, and then as many as do not exceed ``tokens``, or little."""
    while tokens > 0 and (request := next(waiting, None)) is not None:
        tokens -= len(request.source) + 1
        yield request


def _fitting(requests: Sequence[Request[Key]], room: float, *, least: int) -> int:
    """How many of the first requests have room."""
    ends = np.cumsum([len(request.source) + 1 for request in requests])
    return max(int(np.searchsorted(ends, room, side="right")), least)


def checked(done: Finished[Key]) -> list[Hypothesis]:
    """The hypotheses of a sentence. Raises ModelError when there are none."""
    if not done.hypotheses:
        raise ModelError("the model's probabilities are not numbers: its training diverged or its files are damaged")
    return done.hypotheses


@dataclass
class _Sentence(Generic[Key]):
    """What is known of a sentence beside the numbers in its table."""

    request: Request[Key]
    ends: list[End] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


class BeamSearch(Generic[Key]):
    """A running search. It belongs to one thread.

    With ``attention`` hypotheses say where the model looked.
    """

    def __init__(self, predictor: Predictor, *, attention: bool = False) -> None:
        self.predictor, self.attention = predictor, attention
        self._slots = Slots(predictor.device)
        self._history = History()
        self._known: dict[int, _Sentence[Key]] = {}  # by slot
        self._sentences = SentenceTable.of([])
        self._rows = RowTable.beginning(np.arange(0), np.arange(0), NO_WORD)
        self._states: list[Rows] = []  # together, the rows that ``parents_N`` count

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
        return [self._known[slot].request.key for slot in self._sentences.slots_A.tolist()]

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, each counted by the part of its beam that still has places."""
        table = self._sentences
        return float((table.widths_A * table.places_A / table.beams_A).sum())

    def admit(self, requests: Sequence[Request[Key]]) -> None:
        """Let sentences in; they take part from the next step on. Those of like lengths are encoded together."""
        by_length = sorted(requests, key=lambda request: len(request.source))
        for group in group_by_tokens([len(request.source) + 1 for request in by_length], limit=_ENCODE):
            self.enter(self.encode([by_length[number] for number in group]))

    @torch.inference_mode()
    def encode(self, requests: Sequence[Request[Key]]) -> Encoded[Key]:
        """The first half of ``admit``, done for many sentences at once although they enter some at a time."""
        source = pad([request.source for request in requests]).to(self.predictor.device)
        return Encoded(requests, *self.predictor.begin(source))

    @torch.inference_mode()
    def enter(self, encoded: Encoded[Key]) -> None:
        """The other half."""
        requests = encoded.requests
        slots = self._slots.put(encoded.memory, [len(request.source) + 1 for request in requests])
        first = sum(part.rows for part in self._states)
        self._states.append(encoded.state)
        self._known.update(zip(slots.tolist(), map(_Sentence, requests), strict=True))
        self._sentences = self._sentences.join(_table(requests, slots, begun=self._history.time))
        self._rows = self._rows.join(RowTable.beginning(slots, first + np.arange(len(requests)), NO_WORD))

    def cancel(self, keys: Collection[Key]) -> int:
        """Drop sentences; the rest is not disturbed. Returns the number of rows that became free."""
        wanted = set(keys)
        table = self._sentences
        leaving = np.array([self._known[slot].request.key in wanted for slot in table.slots_A.tolist()], dtype=bool)
        before = self.rows
        self._leave(leaving)
        return before - self.rows

    @torch.inference_mode()
    def step(self) -> list[Finished[Key]]:
        """Advance all live hypotheses by one word; returns the sentences that are done with that."""
        if not self.sentences:
            return []
        self._arrange()
        table, origins_N = self._sentences, self._rows.origins_N
        advance = self._advance()
        found = choose(advance, table, self._rows, time=self._history.time)
        kept_AC = found.kept(table.places_A)
        ended_AC = kept_AC & (found.words_AC == END_ID)
        entries_AC = kept_AC.cumsum().reshape(kept_AC.shape) - 1
        looked_NS = advance.attention_NS if self.attention else None
        self._history.add(
            Moment(
                found.words_AC[kept_AC],
                found.log_probs_AC[kept_AC],
                found.rows_AC[kept_AC],
                origins_N,
                None if looked_NS is None else looked_NS[: self.rows].float().cpu().numpy(),
            )
        )
        self._finish(ended_AC, entries_AC, found.totals_AC)
        live_AC = kept_AC & ~ended_AC
        self._rows = RowTable(
            np.broadcast_to(table.slots_A[:, None], live_AC.shape)[live_AC],
            found.rows_AC[live_AC],
            found.words_AC[live_AC],
            found.totals_AC[live_AC],
            entries_AC[live_AC],
        )
        return self._report(self._done(live_AC, found.totals_AC))

    def _arrange(self) -> None:
        """Put rows in the order of their slots and their states in the order of the rows."""
        moved = self._slots.pack()
        if moved is not None:
            self._known = {int(moved[slot]): sentence for slot, sentence in self._known.items()}
            self._sentences = self._sentences._replace(slots_A=moved[self._sentences.slots_A])
            self._rows = self._rows._replace(slots_N=moved[self._rows.slots_N])
        if np.any(np.diff(self._rows.slots_N) < 0):
            self._rows = self._rows.take(np.argsort(self._rows.slots_N, kind="stable"))
            self._sentences = self._sentences.take(np.argsort(self._sentences.slots_A, kind="stable"))
        state = self._states[0] if len(self._states) == 1 else self._states[0].join(self._states[1:])
        parents_N = self._rows.parents_N
        filling = filled(self.rows, state.example) - self.rows
        parents_N = np.pad(parents_N, (0, filling), mode="edge")
        if len(parents_N) != state.rows or not np.array_equal(parents_N, np.arange(len(parents_N))):
            state = state.select(self._on(parents_N))
        self._states = [state]

    def _advance(self) -> Advance:
        """One predictor step for the rows, and for some behind them that fill up a batch."""
        filling = (0, self._states[0].rows - self.rows)
        slots_N = np.pad(self._rows.slots_N, filling, mode="edge")
        widths = self._slots.widths
        if self.predictor.device.type == "cpu":
            layout = lay_out(slots_N, widths, device=self.predictor.device)
        else:
            layout = Layout(self._on(slots_N), [Run(0, len(slots_N), None, int(widths.max()))])
        previous_N = np.pad(self._rows.previous_N, filling, mode="edge")
        advance = self.predictor.advance(self._on(previous_N), self._states[0], self._slots.memory, layout)
        self._states = [advance.state]
        return advance

    def _finish(self, ended_AC: Flags, entries_AC: Integers, totals_AC: Floats) -> None:
        """Note the finished hypotheses of a step, the better first."""
        table, time = self._sentences, self._history.time - 1
        for row, column in np.argwhere(ended_AC).tolist():
            sentence = self._known[int(table.slots_A[row])]
            config = sentence.request.config
            sentence.ends.append(End(time, int(entries_AC[row, column])))
            length = time - int(table.begun_A[row]) + 1
            score = normalize_by_length(
                float(totals_AC[row, column]), length=length, exponent=config.length_normalization
            )
            sentence.scores.append(score)
            if len(sentence.scores) >= config.nbest:
                table.bars_A[row] = sorted(sentence.scores, reverse=True)[config.nbest - 1]
        table.places_A[:] -= ended_AC.sum(axis=1)

    def _done(self, live_AC: Flags, totals_AC: Floats) -> Flags:
        """Whether sentences have no live hypothesis, or none that could still come among the n best.

        Log-probabilities only fall, so that no live hypothesis will have a better score than its present
        total at the greatest length.
        """
        table = self._sentences
        best_A = np.where(live_AC, totals_AC, -np.inf).max(axis=1)
        bound_A = best_A / (table.limits_A + 1.0) ** table.exponents_A
        done_A: Flags = ~live_AC.any(axis=1) | (bound_A * (1 - _MARGIN) < table.bars_A)
        return done_A

    def _report(self, done_A: Flags) -> list[Finished[Key]]:
        sentences = [self._known[slot] for slot in self._sentences.slots_A[done_A].tolist()]
        widths = self._sentences.widths_A[done_A].tolist()
        paths = iter(self._history.trace([end for sentence in sentences for end in sentence.ends]))
        reports = []
        for sentence, width in zip(sentences, widths, strict=True):
            config = sentence.request.config
            hypotheses = [
                make_hypothesis(
                    path.words[:-1],
                    path.log_probs,
                    length_normalization=config.length_normalization,
                    attention=None if path.attention is None else path.attention[:, :width],
                )
                for path in (next(paths) for _ in sentence.ends)
            ]
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier comes first
            reports.append(Finished(sentence.request.key, hypotheses[: config.nbest]))
        self._leave(done_A)
        return reports

    def _leave(self, leaving_A: Flags) -> None:
        if not leaving_A.any():
            return
        slots = self._sentences.slots_A[leaving_A]
        self._rows = self._rows.take(~np.isin(self._rows.slots_N, slots))
        self._sentences = self._sentences.take(~leaving_A)
        self._slots.release(slots)
        for slot in slots.tolist():
            del self._known[slot]
        if not self.sentences:
            self._states = []
            self._slots.pack()
        self._history.forget(int(self._sentences.begun_A.min(initial=self._history.time)))

    def _on(self, values: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(self.predictor.device, non_blocking=True)


def _table(requests: Sequence[Request[Key]], slots: Integers, *, begun: int) -> SentenceTable:
    lines = []
    for request, slot in zip(requests, slots, strict=True):
        words, config = len(request.source), request.config
        limit = _limit(words, ratio=config.max_length_ratio, extra=config.max_length_extra, least=config.min_length)
        rules = (limit, config.min_length, config.forbid_unknown, config.length_normalization)
        lines.append((slot, words + 1, *rules, config.beam, config.beam, begun, -np.inf))
    return SentenceTable.of(lines)
