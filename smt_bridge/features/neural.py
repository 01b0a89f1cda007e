"""Columns of neural models: what a scorer says of a hypothesis and its source, and of the phrase pairs it was made of.

``PairFeature`` makes all columns of a scorer: it asks the scorer and leaves to a *measure* what becomes of each
answer. ``LOG_PROB`` is the log-probability, other measures are per word, of the weakest word, or of unknown words.
``COVERAGE`` is the penalty of Wu et al. 2016 ("Google's Neural Machine Translation System", section 7): the sum of
log min(sum_j a_ji, 1) over the source words i, where a_ji is the attention of target word j; attention at the source's
end is left out.

``PhraseSum`` is the feature of Cho et al. 2014 as it is in the decoder (section 3.1): the sum of ln p over the phrase
pairs a hypothesis used. On lists that mark the pairs it can be tuned without decoding again. A word that Moses copied
because its table does not know it is scored like any other pair; the decoder counts 0 for it.

Shapes: T target words and the end, S source words and the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.base.words import count_words
from smt_bridge.errors import BridgeError, WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import field_of, with_field
from smt_bridge.model_checks import (
    FLOOR,
    check_exchanged,
    check_kind,
    check_language_model,
    check_reverse,
    score_problem,
)

_CHECKED = 100  # pairs, of which the direction of a scorer is seen
Direction = Literal["forward", "reverse", "target"]
"""p(hypothesis | source), p(source | hypothesis), or p(hypothesis) of a model that reads an empty source."""


class PairMeasure(NamedTuple):
    """What becomes of a scorer's answer.

    ``compute`` takes a pair as it was scored and its score to one number per stem; ``stems`` are the
    columns' names without their number; ``per_word`` and ``attention`` say what it needs of an answer,
    ``norm`` what it divides by.
    """

    name: str
    stems: tuple[str, ...]
    compute: Callable[[SentencePair, PairScore], tuple[float, ...]]
    per_word: bool = False
    attention: bool = False
    norm: str | None = None


def _signature_of(scorer: PairScorer, feature: str, direction: Direction) -> str:
    signature = f"feature:{feature}|direction:{direction}|{scorer.signature}"
    return with_field(signature, "tok", field_of(signature, "tok") or "none")


LOG_PROB = PairMeasure("nmt", ("NMT",), lambda pair, score: (score.log_prob,))


class PairFeature:
    """The columns of one measure of one scorer.

    Equal pairs are scored once per call, and all pairs of a call go to the scorer together, so that it
    can form good batches. ``names`` are the measure's stems with 0 behind them unless given.
    Raises WiringError for a model that reads its source in the direction ``target``, and a language model in others.
    """

    def __init__(
        self,
        scorer: PairScorer,
        measure: PairMeasure = LOG_PROB,
        *,
        names: tuple[str, ...] | None = None,
        direction: Direction = "forward",
    ) -> None:
        stems = (stem if direction != "reverse" else f"{stem}reverse" for stem in measure.stems)
        self.names: tuple[str, ...] = names or tuple(f"{stem}0" for stem in stems)
        self._scorer = scorer
        self._measure = measure
        self._direction: Direction = direction
        self._is_checked = False
        check_kind(self.names[0], scorer.signature, language_model=direction == "target")

    @property
    def signature(self) -> str:
        """The scorer's signature, with what was done to its numbers."""
        signature = _signature_of(self._scorer, self._measure.name, self._direction)
        return signature if self._measure.norm is None else with_field(signature, "norm", self._measure.norm)

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The measure of every hypothesis; raises WiringError when the scorer does not give what it needs."""
        pairs = [[self._pair(group.source, text) for text in group.hypotheses] for group in groups]
        distinct = list(dict.fromkeys(pair for row in pairs for pair in row))
        measure = self._measure
        scores = self._scorer.score(distinct, per_word=measure.per_word, attention=measure.attention)
        if self._direction == "reverse":
            check_reverse(distinct, scores, signature=self._scorer.signature)
        if self._direction == "target":
            check_language_model(distinct, scores, signature=self._scorer.signature)
        elif not self._is_checked:
            check_exchanged(self._scorer, distinct, scores, reverse=self._direction == "reverse")
            self._is_checked = len(distinct) >= _CHECKED
        known = {pair: self._measured(pair, score) for pair, score in zip(distinct, scores, strict=True)}
        return [[known[pair] for pair in row] for row in pairs]

    def _pair(self, source: str, hypothesis: str) -> SentencePair:
        match self._direction:
            case "forward":
                return SentencePair(source, hypothesis)
            case "reverse":
                return SentencePair(hypothesis, source)
            case "target":
                return SentencePair("", hypothesis)

    def _measured(self, pair: SentencePair, score: PairScore) -> tuple[float, ...]:
        if self._measure.per_word and score.word_log_probs is None:
            raise WiringError(f"{self.names[0]} needs the score of every word; {self._scorer.signature} has none")
        if self._measure.attention and score.attention is None:
            raise WiringError(
                f"{self.names[0]} needs a model with attention, such as rnnsearch; {self._scorer.signature} has none"
            )
        return self._measure.compute(pair, score)


def per_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """Log p by the words of the scored side and its end: what length costs is left to the word count's weight."""
    return (score.log_prob / (count_words(pair.target) + 1),)


LENGTH_NORMALISED = PairMeasure("nmtnorm", ("NMTnorm",), per_word, norm="words")


def weakest_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """The least likely of the words and the end: one word that does not fit is hidden in a sum."""
    return (min(score.word_log_probs or (0.0,)),)


WEAKEST_WORD = PairMeasure("nmtmin", ("NMTmin",), weakest_word, per_word=True)


UNKNOWN_WORDS = PairMeasure("nmtunk", ("NMTunk",), lambda pair, score: (float(score.unknown_target),))


CONTINUOUS_SPACE = PairMeasure(
    "cslm", ("CSLM", "CSLMunk"), lambda pair, score: (score.log_prob, float(score.unknown_target))
)
"""A continuous-space model (Cho et al. 2014, section 4.1.2), to which all unknown words are one ``<unk>``.

The paper asked it inside the decoder; on n-best lists it rescores. The number of unknown words, with a weight of its
own, is the paper's word penalty.
"""


class SharedScorer:
    """A ``PairScorer`` that remembers its last answers.

    Features of one list ask the same pairs one after the other; the scorer behind is asked once, for
    everything that any of them announced with ``expect``. ``words`` and ``unknown`` count all that it was asked for.
    """

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self.words = self.unknown = 0
        self._per_word = False
        self._attention = False
        self._pairs: list[SentencePair] = []
        self._answers: list[PairScore] = []

    @property
    def signature(self) -> str:
        """The signature of the scorer behind."""
        return self._scorer.signature

    def expect(self, *, per_word: bool, attention: bool) -> None:
        """Announce what will be asked; answers that lack it are forgotten."""
        if (per_word and not self._per_word) or (attention and not self._attention):
            self._pairs, self._answers = [], []
        self._per_word = self._per_word or per_word
        self._attention = self._attention or attention

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One answer per pair; it may hold more than was asked for."""
        self.expect(per_word=per_word, attention=attention)
        wanted = list(pairs)
        if wanted != self._pairs:
            self._pairs, self._answers = [], []  # let the old ones go before the new ones come
            if wanted:
                self._answers = self._scorer.score(wanted, per_word=self._per_word, attention=self._attention)
                self.words += sum(text.count(" ") + 1 for pair in wanted for text in pair if text)
                self.unknown += sum(score.unknown_source + score.unknown_target for score in self._answers)
            self._pairs = wanted
        return self._answers


ATTENTION_FLOOR = 1e-4  # of a word's attention: below it, float32 noise would decide the logarithm
_COVERED = 0.5


def coverage(pair: SentencePair, score: PairScore) -> tuple[float, float]:
    """The penalty of Wu et al. (0 is full coverage), and the fraction of source words below half a look."""
    attended = attention_of_words(score)
    if not attended:
        return 0.0, 0.0
    penalty = math.fsum(math.log(min(max(total, ATTENTION_FLOOR), 1.0)) for total in attended)
    return penalty, sum(total < _COVERED for total in attended) / len(attended)


def attention_of_words(score: PairScore) -> list[float]:
    """The attention that each source word got from all target words and the end together."""
    return [math.fsum(column) for column in zip(*(score.attention or ()), strict=True)][:-1]


COVERAGE = PairMeasure("coverage", ("NMTcoverage", "NMTuncovered"), coverage, attention=True)

_LOG_FLOOR = math.log(FLOOR)


class PhraseSum:
    """Sum of ln p(target phrase | source phrase), or of the ``reverse``, with the table's floor for each pair.

    Raises WiringError for a language model.
    """

    reads_phrases = True

    def __init__(self, scorer: PairScorer, direction: Direction = "forward") -> None:
        self._scorer, self._direction = scorer, direction
        self.names: tuple[str, ...] = ("NMTphrasesreverse0" if direction == "reverse" else "NMTphrases0",)
        check_kind(self.names[0], scorer.signature, language_model=False)

    @property
    def signature(self) -> str:
        """The scorer's signature, with what was done to its numbers."""
        return with_field(_signature_of(self._scorer, "phrases", self._direction), "floor", f"{FLOOR:g}")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One sum per hypothesis; every distinct phrase pair of the call is scored once."""
        phrases = [self._phrases(group) for group in groups]
        distinct = list(dict.fromkeys(pair for group in phrases for pairs in group for pair in pairs))
        scores = self._scorer.score(distinct) if distinct else []
        signature = self._scorer.signature
        known = {pair: _bounded(pair, score, signature) for pair, score in zip(distinct, scores, strict=True)}
        return [[(math.fsum(known[pair] for pair in pairs),) for pairs in group] for group in phrases]

    def _phrases(self, group: Candidates) -> list[list[SentencePair]]:
        if group.phrases is None:
            problem = "needs the phrase pairs of every hypothesis"
            raise WiringError(f"{self.names[0]} {problem}; have Moses write the list with -report-segmentation")
        if self._direction == "forward":
            return [list(pairs) for pairs in group.phrases]
        return [[SentencePair(pair.target, pair.source) for pair in pairs] for pairs in group.phrases]


def _bounded(pair: SentencePair, score: PairScore, signature: str) -> float:
    """As the decoder knows it. Raises BridgeError for what the table refuses."""
    problem = score_problem(pair, score, signature=signature)
    if problem is not None:
        raise BridgeError(problem)
    return min(max(score.log_prob, _LOG_FLOOR), 0.0)
