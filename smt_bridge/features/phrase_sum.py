"""The neural feature of Cho et al. 2014 as it is in the decoder: a sum over the phrase pairs a hypothesis was made of.

In section 3.1 there the score of a phrase pair is one more column of the phrase table, so a hypothesis has the sum of
ln p over the pairs it used. On lists that mark the pairs this column can be tuned without decoding again. A word that
Moses copied because its table does not know it is scored like any other pair; the decoder counts 0 for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from smt_bridge.errors import BridgeError, WiringError
from smt_bridge.features.interface import Candidates
from smt_bridge.features.pair_score import Direction
from smt_bridge.model_checks import FLOOR, check_kind, score_problem
from smt_bridge.signature import Signature

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

    def __repr__(self) -> str:
        return f"PhraseSum({self._scorer!r}, {self._direction!r})"

    @property
    def signature(self) -> str:
        """The scorer's signature, with what was done to its numbers."""
        signature = Signature.parse(self._scorer.signature).with_field("direction", self._direction, first=True)
        signature = signature.with_field("feature", "phrases", first=True)
        return str(signature.with_field("tok", signature.get("tok") or "none").with_field("floor", f"{FLOOR:g}"))

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
