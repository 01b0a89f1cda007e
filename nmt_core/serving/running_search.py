"""Searches that sentences enter and leave while they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt_core.errors import ModelError
from nmt_core.inference.beam_search import BeamSearch
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.copies import restore, rule_of
from nmt_core.inference.predictor import make_predictor
from nmt_core.inference.rescoring import Searched, best_first, score_again, search_is_coarse
from nmt_core.inference.search_config import DecodingConfig
from nmt_core.inference.search_requests import Request
from nmt_core.inference.spelling import Found, Speller, Unspelled, speller_of
from nmt_core.inference.translation import Translation
from nmt_core.serving.slices import Sliced
from nmt_core.text.sentence import Sentence
from nmt_core.text.unknown_share import UnknownShare

if TYPE_CHECKING:
    from nmt_core.inference.hypothesis import Hypothesis
    from nmt_core.inference.unknowns import UnknownReplacement
    from nmt_core.models.checkpoint import LoadedModel

_EMPTY = Translation("", (), 0.0, 0.0, (), ())
_SLICE = 0.02  # seconds of a step for spelling


class SearchItem(NamedTuple):
    """A tokenised sentence, and how to search for its translations."""

    text: str
    config: DecodingConfig


class _Admitted(NamedTuple):
    """A sentence that is searched, and how."""

    source: Sentence
    config: DecodingConfig


class _Ended(NamedTuple):
    """A sentence whose words are found."""

    sentence: _Admitted
    found: list[Found]


class _Spelling(NamedTuple):
    """The sentences that are being spelled, and the computation."""

    keys: frozenset[int]
    work: Sliced[dict[int, list[Found]]]


class RunningSearch:
    """A beam search that ``SearchItem``s, with their own options, enter and leave at every step.

    The unknown words of a sentence may be many, and are searched for by their characters when all its words are found:
    this goes on beside the search of others, a slice of every step.

    Where search is less exact than the pair scorer, translations have the numbers of that one. ``rule`` is what is
    written for the places that models of annotated text write; None is their own.
    """

    waits = 0.0

    def __init__(
        self,
        models: Sequence[LoadedModel],
        *,
        attention: bool,
        unknown: UnknownShare | None = None,
        rule: UnknownReplacement | None = None,
    ) -> None:
        self._models, self._unknown = tuple(models), unknown
        self._rescores, self._speller = search_is_coarse(models), speller_of(models)
        self._target, self._order = models[0].target, models[0].target_order
        self._copying, self._rule = models[0].copying, rule or rule_of(models[0])
        self._predictor, self._attention = make_predictor(models), attention
        self._aligns = self._predictor.aligns or "written"
        self._search: BeamSearch[int] = BeamSearch(self._predictor, attention=attention)
        self._admitted: dict[int, _Admitted] = {}
        self._empty: list[int] = []
        self._ended: dict[int, _Ended] = {}
        self._spelling: _Spelling | None = None

    @property
    def tokens(self) -> float:
        """Live hypotheses times the mean length of their sources, and translations that are not spelled yet."""
        unspelled = sum(len(one.found) * (len(one.sentence.source) + 1) for one in self._ended.values())
        if not self._admitted:
            return float(unspelled)
        mean = sum(len(one.source) for one in self._admitted.values()) / len(self._admitted) + 1
        return self._search.rows * mean + unspelled

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences in; one without words has the empty translation, without asking the model."""
        entering = []
        for key, (text, asked) in requests:
            config = asked if self._copying is None else asked.lengthened(self._copying.scheme.tokens_of_a_word)
            source = self._models[0].encode_text(text)
            if source:
                self._admitted[key] = _Admitted(source, config)
                entering.append(Request(key, source, config))
                self._count_unknown(source)
            else:
                self._empty.append(key)
        if entering:
            self._enter(entering)

    def _count_unknown(self, source: Sentence) -> None:
        """Count the words that none of the models knows."""
        if self._unknown is not None:
            unknown = sum(all(word not in one.source for one in self._models) for word in source.words)
            self._unknown.add(words=len(source), unknown=unknown)

    def _enter(self, requests: list[Request[int]]) -> None:
        self._search.admit(requests)

    def step(self) -> list[tuple[int, Any]]:
        """One step; an answer is the list of a sentence's translations."""
        found: list[tuple[int, Any]] = [(key, [_EMPTY]) for key in self._empty]
        self._empty = []
        finished = {
            done.key: (self._admitted.pop(done.key), [self._in_text(one) for one in done.hypotheses])
            for done in self._search.step()
        }
        for key, sentence, hypotheses in self._scored(finished):
            words = [Found(one, tuple(self._target.decode(one.words))) for one in hypotheses]
            self._ended[key] = _Ended(sentence, words)
        for key, (sentence, translations) in self._spelled():
            nbest: Any = [self._translation(*one, sentence.source.words) for one in translations]
            found.append((key, nbest or ModelError("the model's probabilities are not numbers")))
        return found

    def _scored(
        self, finished: dict[int, tuple[_Admitted, list[Hypothesis]]]
    ) -> Iterator[tuple[int, _Admitted, list[Hypothesis]]]:
        """Finished sentences with the pair scorer's numbers, where these are the better ones."""
        if not (self._rescores and finished):
            yield from ((key, *one) for key, one in finished.items())
            return
        searched = [Searched(one.source.text, nbest, one.config.ranking) for one, nbest in finished.values()]
        for (key, (sentence, _)), nbest in zip(finished.items(), score_again(self._models, searched), strict=True):
            yield key, sentence, best_first(nbest)

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences."""
        self._empty = [key for key in self._empty if key not in keys]
        self._search.cancel([key for key in keys if self._admitted.pop(key, None) is not None])
        self._ended = {key: one for key, one in self._ended.items() if key not in keys}
        if self._spelling is not None and self._spelling.keys.isdisjoint(self._ended):
            self._spelling.work.give_up()
            self._spelling = None

    def _in_text(self, hypothesis: Hypothesis) -> Hypothesis:
        """With the ids of the vocabulary in the order of the text."""
        return hypothesis.turned(self._order, self._aligns)

    def _spelled(self) -> Iterator[tuple[int, _Ended]]:
        """Sentences that are done, with their words, unknown ones spelled where the models spell."""
        if self._speller is None:
            yield from self._ended.items()
            self._ended = {}
            return
        if self._spelling is None and self._ended:
            self._spelling = self._begun(self._speller, dict(self._ended))
        if self._spelling is None or not self._spelling.work.advance(_SLICE):
            return
        spelled, self._spelling = self._spelling.work.result(), None
        for key, found in spelled.items():
            if (one := self._ended.pop(key, None)) is not None:
                yield key, one._replace(found=found)

    @staticmethod
    def _begun(speller: Speller, ended: dict[int, _Ended]) -> _Spelling:
        asked = [Unspelled(one.sentence.source.text, one.found, one.sentence.config) for one in ended.values()]
        return _Spelling(frozenset(ended), Sliced(lambda: dict(zip(ended, speller.spell(asked), strict=True))))

    def _translation(self, hypothesis: Hypothesis, words: tuple[str, ...], source: tuple[str, ...]) -> Translation:
        totals, numbers = (hypothesis.log_prob, hypothesis.score), hypothesis.word_log_probs
        if self._copying is None:
            return Translation(
                " ".join(words), words, *totals, numbers, source, hypothesis.attention, aligns=self._aligns
            )
        found = restore(
            self._copying,
            self._rule,
            words,
            source,
            word_log_probs=numbers,
            attention=hypothesis.attention,
            aligns=self._aligns,
        )
        text = " ".join(found.words)
        return Translation(
            text, found.words, *totals, found.word_log_probs, source, found.attention, unknown=found.counts
        )


class CandidateSearch(RunningSearch):
    """The same with candidate lists: sentences that arrive while others are searched wait, and share the next list."""

    def __init__(
        self,
        models: Sequence[LoadedModel],
        lists: CandidateLists,
        *,
        attention: bool,
        unknown: UnknownShare | None = None,
        rule: UnknownReplacement | None = None,
    ) -> None:
        super().__init__(models, attention=attention, unknown=unknown, rule=rule)
        self._lists, self._rescores = lists, False  # the pair scorer has another distribution
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

    def _in_text(self, hypothesis: Hypothesis) -> Hypothesis:
        words = tuple(self._ids[place] for place in hypothesis.words)
        return super()._in_text(dataclasses.replace(hypothesis, words=words))
