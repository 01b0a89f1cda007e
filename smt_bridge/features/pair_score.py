"""The neural log-probability of a hypothesis given its source, or of the source given the hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.interfaces import PairScorer, SentencePair
from smt_bridge.features.interface import Candidates


class PairScoreFeature:
    """log p(hypothesis | source), or log p(source | hypothesis) where ``reverse``.

    Equal pairs are scored once per call, and all pairs of a call go to the scorer together, so that it
    can form good batches.
    """

    def __init__(self, scorer: PairScorer, name: str, *, reverse: bool = False) -> None:
        self.names: tuple[str, ...] = (name,)
        self._scorer = scorer
        self._reverse = reverse

    def __repr__(self) -> str:
        return f"PairScoreFeature({self.names[0]!r}, {self._scorer.signature!r}, reverse={self._reverse})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis."""
        pairs = [[self._pair(group.source, text) for text in group.hypotheses] for group in groups]
        distinct = list(dict.fromkeys(pair for row in pairs for pair in row))
        scores = self._scorer.score(distinct) if distinct else []
        known = {pair: (score.log_prob,) for pair, score in zip(distinct, scores, strict=True)}
        return [[known[pair] for pair in row] for row in pairs]

    def _pair(self, source: str, hypothesis: str) -> SentencePair:
        return SentencePair(hypothesis, source) if self._reverse else SentencePair(source, hypothesis)
