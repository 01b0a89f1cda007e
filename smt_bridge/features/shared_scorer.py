"""One scorer for several features at the price of one."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair


class SharedScorer:
    """A ``PairScorer`` that remembers its last answers.

    Features of one list ask the same pairs one after the other; the scorer behind is asked once, for
    everything that any of them announced with ``expect``.
    """

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._per_word = False
        self._attention = False
        self._pairs: list[SentencePair] = []
        self._answers: list[PairScore] = []

    def __repr__(self) -> str:
        return f"SharedScorer({self._scorer!r}, per_word={self._per_word}, attention={self._attention})"

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
            self._pairs = wanted
        return self._answers
