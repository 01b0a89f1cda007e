"""Searches that sentences enter and leave while they run."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt_core.base.errors import ModelError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.lines import guidance_in_ids
from nmt_core.inference.output.finish import Finisher, Searched, search_is_coarse
from nmt_core.inference.search.beam import BeamSearch
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.ensemble import make_predictor
from nmt_core.inference.search.requests import Request
from nmt_core.serving.engine.slices import SLICE, Sliced
from nmt_core.serving.engine.work import LARGE
from nmt_core.text.sentence import Sentence
from nmt_core.text.unknown_share import UnknownShare

if TYPE_CHECKING:
    from nmt_core.inference.output.finish import Translation
    from nmt_core.inference.output.unknowns import UnknownReplacement
    from nmt_core.inference.search.hypothesis import Hypothesis
    from nmt_core.model_directory.loaded_model import LoadedModel


class SearchItem(NamedTuple):
    """A tokenised sentence, how to search for its translations, and what another system says of them.

    Advice is for models that follow it (``check_follows_advice``), and for search among all words.
    """

    text: str
    config: DecodingConfig
    advice: NgramGuidance | None = None


class _Admitted(NamedTuple):
    """A sentence that is searched, and how."""

    source: Sentence
    config: DecodingConfig


class _Ended(NamedTuple):
    """A sentence whose search has ended, and what was found."""

    sentence: _Admitted
    hypotheses: list[Hypothesis]


class _Completing(NamedTuple):
    """The sentences that are scored again or spelled, and the computation."""

    keys: frozenset[int]
    work: Sliced[dict[int, list[Translation]]]


class RunningSearch:
    """A beam search that ``SearchItem``s, with their own options, enter and leave at every step.

    Where search is less exact than the pair scorer, translations have the numbers of that one. Unknown words are
    searched for by their characters, where the models spell, when all words of a sentence are found. Both may take
    long; they go on beside the search of others, a slice of every step. ``unknowns`` says what is written for the
    places that models of annotated text write; None is their own.
    """

    waits = 0.0

    def __init__(
        self,
        models: Sequence[LoadedModel],
        *,
        attention: bool,
        share: UnknownShare | None = None,
        unknowns: UnknownReplacement | None = None,
        rescores: bool = True,
    ) -> None:
        self._models, self._share = tuple(models), share
        self._target, self._copying = models[0].target, models[0].copying
        self._predictor, self._attention = make_predictor(models), attention
        self._finisher = Finisher(
            models,
            self._predictor.aligns or "written",
            rescores=rescores and search_is_coarse(models),
            unknowns=None if self._copying is None else unknowns,
        )
        self._search: BeamSearch[int] = BeamSearch(self._predictor, attention=attention)
        self._admitted: dict[int, _Admitted] = {}
        self._empty: list[int] = []
        self._ended: dict[int, _Ended] = {}
        self._completing: collections.deque[_Completing] = collections.deque()

    @property
    def tokens(self) -> float:
        """Live hypotheses times the mean length of their sources, and translations that are not complete yet."""
        ended = sum(len(one.hypotheses) * (len(one.sentence.source) + 1) for one in self._ended.values())
        if not self._admitted:
            return float(ended)
        mean = sum(len(one.source) for one in self._admitted.values()) / len(self._admitted) + 1
        return self._search.rows * mean + ended

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences in; one without words has the empty translation, without a search."""
        entering = []
        for key, (text, asked, advice) in requests:
            config = asked if self._copying is None else asked.lengthened(self._copying.scheme.tokens_of_a_word)
            source = self._models[0].encode_text(text)
            if source:
                self._admitted[key] = _Admitted(source, config)
                followed = None if advice is None else guidance_in_ids(advice, self._target)
                entering.append(Request(key, source, config, guidance=followed))
                self._count_unknown(source)
            else:
                self._empty.append(key)
        if entering:
            self._enter(entering)

    def _count_unknown(self, source: Sentence) -> None:
        """Count the words that none of the models knows."""
        if self._share is not None:
            unknown = sum(all(word not in one.source for one in self._models) for word in source.words)
            self._share.add(words=len(source), unknown=unknown)

    def _enter(self, requests: list[Request[int]]) -> None:
        self._search.admit(requests)

    def step(self) -> list[tuple[int, Any]]:
        """One step; an answer is the list of a sentence's translations."""
        found = self._not_searched()
        for done in self._search.step():
            hypotheses = [self._in_vocabulary(one) for one in done.hypotheses]
            self._ended[done.key] = _Ended(self._admitted.pop(done.key), hypotheses)
        for key, nbest in self._completed():
            found.append((key, nbest or ModelError("the model's probabilities are not numbers")))
        return found

    def _not_searched(self) -> list[tuple[int, Any]]:
        """The answers to sentences without words."""
        if not self._empty:
            return []
        [only] = self._finisher.finish([Searched(self._models[0].encode_text(""), [], DecodingConfig())])
        found: list[tuple[int, Any]] = [(key, only) for key in self._empty]
        self._empty = []
        return found

    def _completed(self) -> Iterator[tuple[int, list[Translation]]]:
        """The sentences that are done with this step: what takes long takes turns, what is new has the first."""
        begun = {key for one in self._completing for key in one.keys}
        ended = {key: one for key, one in self._ended.items() if key not in begun}
        if ended and not self._take_long(ended.values()):
            yield from self._leaving(self._complete(ended))
        elif ended:
            work = Sliced(lambda: self._complete(ended))
            self._completing.appendleft(_Completing(frozenset(ended), work))
        if self._completing:
            first = self._completing.popleft()
            if first.work.advance(SLICE):
                yield from self._leaving(first.work.result())
            else:
                self._completing.append(first)

    def _leaving(self, complete: Mapping[int, list[Translation]]) -> Iterator[tuple[int, list[Translation]]]:
        """Those that were not cancelled meanwhile."""
        for key, translations in complete.items():
            if self._ended.pop(key, None) is not None:
                yield key, translations

    def _take_long(self, ended: Collection[_Ended]) -> bool:
        words = sum(len(one.words) for sentence in ended for one in sentence.hypotheses)
        return self._finisher.spells or (self._finisher.rescores and words > LARGE)

    def _complete(self, ended: Mapping[int, _Ended]) -> dict[int, list[Translation]]:
        """Their translations."""
        searched = [Searched(one.source, nbest, one.config) for one, nbest in ended.values()]
        return dict(zip(ended, self._finisher.finish(searched), strict=True))

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences."""
        self._empty = [key for key in self._empty if key not in keys]
        self._ended = {key: one for key, one in self._ended.items() if key not in keys}
        for one in [one for one in self._completing if one.keys.isdisjoint(self._ended)]:
            one.work.give_up()
            self._completing.remove(one)
        self._search.cancel([key for key in keys if self._admitted.pop(key, None) is not None])

    def _in_vocabulary(self, hypothesis: Hypothesis) -> Hypothesis:
        """With the ids of the vocabulary."""
        return hypothesis


class CandidateSearch(RunningSearch):
    """The same with candidate lists: sentences that arrive while others are searched wait, and share the next list."""

    def __init__(
        self,
        models: Sequence[LoadedModel],
        lists: CandidateLists,
        *,
        attention: bool,
        share: UnknownShare | None = None,
        unknowns: UnknownReplacement | None = None,
    ) -> None:
        # the pair scorer has another distribution
        super().__init__(models, attention=attention, share=share, unknowns=unknowns, rescores=False)
        self._lists = lists
        self._ids: list[int] = []  # of the words of the list
        self._waiting: list[Request[int]] = []

    @property
    def tokens(self) -> float:
        """What is searched, and what waits."""
        return super().tokens + sum(request.config.beam * (len(request.source) + 1) for request in self._waiting)

    def _enter(self, requests: list[Request[int]]) -> None:
        self._waiting += requests

    def step(self) -> list[tuple[int, Any]]:
        """One step; when nobody is left, those who wait begin."""
        if self._waiting and not self._search.rows:
            words_C = self._lists.of(word for request in self._waiting for word in request.source.words)
            self._ids = words_C.tolist()
            self._search = BeamSearch(self._predictor.restrict_vocabulary(words_C), attention=self._attention)
            self._search.admit(self._waiting)
            self._waiting = []
        return super().step()

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences, and forget those who wait."""
        waiting = {request.key for request in self._waiting}.intersection(keys)
        self._waiting = [request for request in self._waiting if request.key not in waiting]
        for key in waiting:
            del self._admitted[key]
        super().cancel([key for key in keys if key not in waiting])

    def _in_vocabulary(self, hypothesis: Hypothesis) -> Hypothesis:
        return dataclasses.replace(hypothesis, words=tuple(self._ids[place] for place in hypothesis.words))
