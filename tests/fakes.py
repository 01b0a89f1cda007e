"""Scorers for tests: the real interface, and numbers that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nmt_core.base.interfaces import PairScore, SentencePair


class TablePairScorer:
    """Looks every pair up; a pair that is not in the table is a KeyError.

    ``scored`` is the log of all pairs that were asked, call after call.
    """

    signature = "fake:table"

    def __init__(self, scores: Mapping[tuple[str, str], float | PairScore]) -> None:
        self.scores = scores
        self.scored: list[SentencePair] = []

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One answer per pair; a number stands for a pair of known words."""
        self.scored.extend(pairs)
        answers = [self.scores[pair] for pair in pairs]
        return [answer if isinstance(answer, PairScore) else PairScore(answer) for answer in answers]


class LengthPairScorer:
    """Charges every target word and the end ``nats``, plus a thousandth for each source word.

    Words in ``unknown`` count as unknown on either side; the attention is even over the source and its end.
    ``calls`` has for every call its number of pairs and what was asked of them.
    """

    signature = "fake:length"

    def __init__(self, nats: float = 0.5, *, unknown: frozenset[str] = frozenset()) -> None:
        self.nats = nats
        self.unknown = unknown
        self.calls: list[tuple[int, bool, bool]] = []

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One answer per pair."""
        self.calls.append((len(pairs), per_word, attention))
        return [self._score(pair, per_word, attention) for pair in pairs]

    def _score(self, pair: SentencePair, per_word: bool, attention: bool) -> PairScore:
        source, target = ([word for word in side.split(" ") if word] for side in pair)
        word = -self.nats - 0.001 * len(source)
        return PairScore(
            word * (len(target) + 1),
            sum(token in self.unknown for token in source),
            sum(token in self.unknown for token in target),
            (word,) * (len(target) + 1) if per_word else None,
            ((1.0 / (len(source) + 1),) * (len(source) + 1),) * (len(target) + 1) if attention else None,
        )
