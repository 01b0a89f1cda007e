"""Searches that sentences enter and leave while they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt_core.base.errors import ModelError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.lines import guidance_in_ids
from nmt_core.inference.output.finish import Finisher
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.beam import BeamSearch
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.inference.search.requests import Finished, Request
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.serving.engine.work import LARGE, Unfinished
from nmt_core.text.unknown_share import UnknownShare


class SearchItem(NamedTuple):
    """A tokenised sentence, how its translations are found, and what another system says of them.

    Guidance is for models that follow it (``check_follows_guidance``), and for search among all words.
    """

    text: str
    config: DecodingConfig
    guidance: NgramGuidance | None = None


def open_finisher(
    models: Sequence[LoadedModel], *, unknowns: UnknownReplacement | None = None, rescores: bool = True
) -> Finisher:
    """What makes translations of hypotheses. Where search is less exact than the pair scorer, they have its numbers.

    ``unknowns`` says what is written for the places that models of annotated text write; None is their own.
    """
    return Finisher(models, make_predictor(models).aligns, rescores=rescores, unknowns=unknowns)


def finish(finisher: Finisher, searched: Sequence[Finished[int]]) -> list[Any]:
    """The translations of each sentence, or why it has none. It completes the unfinished answers of searches, too."""
    problem = "the model's probabilities are not numbers"
    return [nbest or ModelError(problem) for nbest in finisher.finish(searched)]


class RunningSearch:
    """A beam search that ``SearchItem``s, with their own options, enter and leave at every step.

    With candidate ``lists`` sentences that arrive while others are searched wait, and share the next list. Hypotheses
    that are to be scored again, or whose unknown words are to be spelled, are ``Unfinished``: a second job does that
    (``finish``), which may take long. ``finisher`` is by default that of the models.
    """

    waits = 0.0

    def __init__(
        self,
        models: Sequence[LoadedModel],
        *,
        attention: bool,
        lists: CandidateLists | None = None,
        share: UnknownShare | None = None,
        finisher: Finisher | None = None,
    ) -> None:
        self._models, self._lists, self._share = tuple(models), lists, share
        self._target, self._copying = models[0].target, models[0].copying
        self._predictor, self._attention = make_predictor(models), attention
        # with candidate lists the pair scorer has another distribution
        self._finisher = finisher or open_finisher(models, rescores=lists is None)
        self._search: BeamSearch[int] = BeamSearch(self._predictor, attention=attention)
        self._admitted: dict[int, Request[int]] = {}
        self._empty: list[int] = []
        self._waiting: list[Request[int]] = []  # for the next list
        self._ids: list[int] | None = None  # of the words of the list

    @property
    def tokens(self) -> float:
        """Live hypotheses times the mean length of their sources, and what waits."""
        if not self._admitted:
            return 0.0
        mean = sum(len(one.source) for one in self._admitted.values()) / len(self._admitted) + 1
        waiting = sum(request.search.beam * (len(request.source) + 1) for request in self._waiting)
        return self._search.rows * mean + waiting

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences in; one without words has the empty translation, without a search."""
        entering = []
        for key, (text, asked, guidance) in requests:
            config = asked if self._copying is None else asked.lengthened(self._copying.scheme.tokens_of_a_word)
            source = self._models[0].encode_text(text)
            if not source:
                self._empty.append(key)
                continue
            in_ids = None if guidance is None else guidance_in_ids(guidance, self._target)
            request = self._admitted[key] = Request(key, source, config, guidance=in_ids)
            entering.append(request)
            if self._share is not None:  # of words that none of the models knows
                unknown = sum(all(word not in one.source for one in self._models) for word in source.words)
                self._share.add(words=len(source), unknown=unknown)
        if self._lists is not None:
            self._waiting += entering
        elif entering:
            self._search.admit(entering)

    def _begin_list(self, lists: CandidateLists) -> None:
        """Search for the sentences that wait, among the words of their list."""
        words_C = lists.of(word for request in self._waiting for word in request.source.words)
        self._ids = words_C.tolist()
        self._search = BeamSearch(self._predictor.restrict_vocabulary(words_C), attention=self._attention)
        self._search.admit(self._waiting)
        self._waiting = []

    def step(self) -> list[tuple[int, Any]]:
        """One step; an answer is the list of a sentence's translations, or its unfinished hypotheses."""
        if self._lists is not None and self._waiting and not self._search.rows:
            self._begin_list(self._lists)
        keys, self._empty = self._empty, []
        searched = [Finished(Request(key, self._models[0].encode_text(""), DecodingConfig()), []) for key in keys]
        for done in self._search.step():
            del self._admitted[done.request.key]
            if self._ids is not None:  # search has the ids of a list
                done = done.with_words(self._ids)
            keys.append(done.request.key)
            searched.append(done)
        if not searched:
            return []
        if self._finisher.rescores or self._finisher.spells:
            return list(zip(keys, map(self._unfinished, searched), strict=True))
        return list(zip(keys, finish(self._finisher, searched), strict=True))

    def _unfinished(self, searched: Finished[int]) -> Unfinished:
        """Spelling searches once more for each unknown word: it may take any time."""
        words = sum(len(one.words) + 1 for one in searched.hypotheses)
        return Unfinished(searched, words + LARGE if self._finisher.spells else words)

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences, and forget those that wait."""
        self._empty = [key for key in self._empty if key not in keys]
        waiting = {request.key for request in self._waiting}.intersection(keys)
        self._waiting = [request for request in self._waiting if request.key not in waiting]
        gone = [key for key in keys if self._admitted.pop(key, None) is not None]
        self._search.cancel([key for key in gone if key not in waiting])
