"""The neural log-probability of a hypothesis given its source, or of the source given the hypothesis.

``PairFeature`` makes all columns of a scorer: it asks the scorer and leaves to a *measure* what becomes of
each answer. The measures are ``LOG_PROB`` here, those of ``pair_measures``, coverage and attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from smt_bridge.errors import WiringError
from smt_bridge.features.interface import Candidates
from smt_bridge.model_checks import check_exchanged, check_kind, check_language_model, check_reverse
from smt_bridge.signature import Signature

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

    def __repr__(self) -> str:
        return f"PairFeature({self.names}, {self.signature!r})"

    @property
    def signature(self) -> str:
        """The scorer's signature, with what was done to its numbers."""
        signature = Signature.parse(self._scorer.signature).with_field("direction", self._direction, first=True)
        signature = signature.with_field("feature", self._measure.name, first=True)
        signature = signature.with_field("tok", signature.get("tok") or "none")
        return str(signature if self._measure.norm is None else signature.with_field("norm", self._measure.norm))

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
