"""Advice for a model that writes words in parts, with ``@@`` behind all but the last: its n-grams are of whole words.

    log p(y | x) + weight · Σ_t Σ_n factor_n · (p(n - 1 words, then that of part t) - 1)

The last part of a word has the posteriors of the word; an earlier one has those of a word that begins so, the one with
the largest sum over n. So each part counts as a word does in ``WordAdvice``: what it adds is at most 0, and where
scores are divided by the number of parts the constant changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt_core.inference.search.bonus import BEGIN, FACTORS, Added, Advice, added_of
from nmt_core.preparation.subwords import JOINER
from nmt_core.text.vocabulary import END, END_ID, UNKNOWN, UNKNOWN_ID, Vocabulary

Words = tuple[str, ...]


class _Context(NamedTuple):
    """The last whole words, behind the beginning of the sentence, and what of the next has been written."""

    history: Words
    begun: str


class JoinedAdvice(Advice):
    """The posteriors of one sentence, as ``WordAdvice`` has them, but of whole words."""

    def __init__(
        self,
        posteriors: Mapping[Words, float],
        target: Vocabulary,
        *,
        weight: float,
        factors: Sequence[float] = FACTORS,
    ) -> None:
        super().__init__(weight * sum(factors))
        self._target, self._history = target, len(factors) - 1
        self._after: dict[Words, dict[str, float]] = {}
        self._bonuses: dict[Words, dict[str, float]] = {}
        self._added: dict[_Context, Added] = {}
        for (*before, last), posterior in posteriors.items():
            if len(before) <= self._history and UNKNOWN not in (*before, last) and last != BEGIN:
                self._after.setdefault(tuple(before), {})[last] = weight * factors[len(before)] * posterior

    def added(self, words: Sequence[int]) -> Added:
        """Behind the first ``words`` of a translation."""
        context = self._context(self._target.decode(words))
        known = self._added.get(context)
        if known is None:
            known = self._added[context] = self._added_anew(context)
        return known

    def _context(self, parts: Sequence[str]) -> _Context:
        end = _beginning(parts, len(parts) + 1)
        begun = _joined(parts[end:])
        history: list[str] = []
        while end and len(history) < self._history:
            begin = _beginning(parts, end)
            history.append(_joined(parts[begin:end]))
            end = begin
        before = [BEGIN] if len(history) < self._history else []
        return _Context((*before, *reversed(history)), begun)

    def _added_anew(self, context: _Context) -> Added:
        history, begun = context
        found: dict[int, float] = {}
        for word, bonus in self._bonuses_after(history).items():
            rest = word.removeprefix(begun) if word.startswith(begun) and word != END else ""
            if rest:
                parts = [rest[:size] + JOINER for size in range(1, len(rest))]
                for number in self._target.encode_words([*parts, rest]):
                    found[number] = max(found.get(number, 0.0), bonus)
        found.pop(UNKNOWN_ID, None)
        words = (*history, begun) if begun else history
        found[END_ID] = self._bonuses_after(words[max(0, len(words) - self._history) :]).get(END, 0.0)
        return added_of(found)

    def _bonuses_after(self, history: Words) -> dict[str, float]:
        """What each listed word has behind these words."""
        known = self._bonuses.get(history)
        if known is None:
            known = self._bonuses[history] = {}
            for size in range(len(history) + 1):
                for word, bonus in self._after.get(history[len(history) - size :], {}).items():
                    known[word] = known.get(word, 0.0) + bonus
        return known


def _beginning(parts: Sequence[str], end: int) -> int:
    """Where the word begins whose last part, number ``end`` - 1, is written or still to come."""
    begin = end - 1
    while begin and parts[begin - 1].endswith(JOINER):
        begin -= 1
    return begin


def _joined(parts: Sequence[str]) -> str:
    return "".join(part.removesuffix(JOINER) for part in parts)
