"""N-gram guidance: another system's n-gram posteriors as a bonus in free search (Stahlberg et al. 2017).

    log p(y | x) + weight · Σ_t Σ_n factor_n · (p(the n-gram that ends with word t) - 1)

p are posteriors, 0 for n-grams that are not listed; ``</s>`` is a word, too. It is the linear gain of lattice MBR
(Tromble et al. 2008, equation 5) minus a constant for each word: what a word adds is at most 0, so that a search knows
when it is done, and where scores are divided by the length the constant changes nothing.

For a model that writes words in parts, with ``@@`` behind all but the last, n-grams are of whole words
(``JoinedGuidance``). The last part of a word has the posteriors of the word; an earlier part has the posteriors of
a word that begins so, the one with the largest sum over n. So each part counts as a word does and adds at most 0.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from nmt_core.base.interfaces import NgramGuidance
from nmt_core.preparation.subwords import JOINER
from nmt_core.text.vocabulary import END, END_ID, UNKNOWN, UNKNOWN_ID, Vocabulary

Words = tuple[str, ...]

FACTORS = (1.0, 0.6, 0.1, 0.5)  # of 1, 2, 3 and 4 words; about those tuned by Stahlberg et al. (2017) for WMT15
BEGIN = "<s>"
_BEGIN_ID = -1


class Added(NamedTuple):
    """What words (ids, ascending) have behind a history that other words do not have."""

    words_M: npt.NDArray[np.int64]
    bonuses_M: npt.NDArray[np.float64]


def added_of(bonuses: Mapping[int, float]) -> Added:
    """Of bonuses by id."""
    ascending = sorted(bonuses)
    bonuses_M = np.array([bonuses[word] for word in ascending], dtype=np.float64)
    return Added(np.array(ascending, dtype=np.int64), bonuses_M)


class GuidanceInIds(abc.ABC):
    """N-gram posteriors of another system for one sentence, in the model's ids; each word loses ``constant``."""

    def __init__(self, asked: NgramGuidance, target: Vocabulary) -> None:
        self.constant = asked.weight * sum(asked.factors)
        self._target, self._history = target, len(asked.factors) - 1
        self._added: dict[tuple[Any, ...], Added] = {}

    @abc.abstractmethod
    def _context(self, words: Sequence[int]) -> tuple[Any, ...]:
        """All that the bonuses behind these words depend on."""

    @abc.abstractmethod
    def _bonuses(self, context: Any) -> dict[int, float]:
        """What words have there that other words do not have; none is above the constant."""

    def added(self, words: Sequence[int]) -> Added:
        """The bonuses behind the first ``words`` of a translation."""
        context = self._context(words)
        known = self._added.get(context)
        if known is None:
            known = self._added[context] = added_of(self._bonuses(context))
        return known

    def value(self, words: Sequence[int], word: int) -> float:
        """What ``word`` adds to the score behind ``words``; at most 0."""
        added = self.added(words)
        place = int(np.searchsorted(added.words_M, word))
        listed = place < len(added.words_M) and added.words_M[place] == word
        return (float(added.bonuses_M[place]) if listed else 0.0) - self.constant


Word = TypeVar("Word", int, str)


def _sums(after: Mapping[tuple[Word, ...], Mapping[Word, float]], history: tuple[Word, ...]) -> dict[Word, float]:
    """The bonuses of the words that follow all of a history, or its last words, added up."""
    sums: dict[Word, float] = {}
    for size in range(len(history) + 1):
        for word, bonus in after.get(history[len(history) - size :], {}).items():
            sums[word] = sums.get(word, 0.0) + bonus
    return sums


class WordGuidance(GuidanceInIds):
    """The posteriors of one sentence, of n-grams of the words that the model writes.

    ``posteriors`` are of n-grams as text, in which ``<s>`` begins and ``</s>`` ends a sentence. N-grams of words that
    the vocabulary does not have, and those longer than there are ``factors``, count nothing.
    """

    def __init__(self, asked: NgramGuidance, target: Vocabulary) -> None:
        super().__init__(asked, target)
        self._after: dict[tuple[int, ...], dict[int, float]] = {}
        for ngram, posterior in asked.posteriors.items():
            if len(ngram) <= len(asked.factors) and (ids := _ids(ngram, target)):
                bonus = asked.weight * asked.factors[len(ids) - 1] * posterior
                self._after.setdefault(ids[:-1], {})[ids[-1]] = bonus

    def _context(self, words: Sequence[int]) -> tuple[int, ...]:
        """The last words, behind the beginning of the sentence."""
        if not self._history:
            return ()
        last = tuple(words[-self._history :])
        return last if len(last) == self._history else (_BEGIN_ID, *last)

    def _bonuses(self, context: tuple[int, ...]) -> dict[int, float]:
        return _sums(self._after, context)


def _ids(ngram: Sequence[str], target: Vocabulary) -> tuple[int, ...] | None:
    """None for words that the model does not have, or that stand where they cannot."""
    *before, last = ngram
    begins = bool(before) and before[0] == BEGIN
    ids = target.encode_words(before[begins:])
    ids.append(END_ID if last == END else UNKNOWN_ID if last == BEGIN else target.encode_words([last])[0])
    return None if UNKNOWN_ID in ids else (*[_BEGIN_ID][:begins], *ids)


class _Context(NamedTuple):
    """The last whole words, behind the beginning of the sentence, and what of the next has been written."""

    history: Words
    started: str


class JoinedGuidance(GuidanceInIds):
    """The posteriors of one sentence, as ``WordGuidance`` has them, but of whole words."""

    def __init__(self, asked: NgramGuidance, target: Vocabulary) -> None:
        super().__init__(asked, target)
        self._after: dict[Words, dict[str, float]] = {}
        self._sums: dict[Words, dict[str, float]] = {}
        for (*before, last), posterior in asked.posteriors.items():
            if len(before) <= self._history and UNKNOWN not in (*before, last) and last != BEGIN:
                self._after.setdefault(tuple(before), {})[last] = asked.weight * asked.factors[len(before)] * posterior

    def _context(self, words: Sequence[int]) -> _Context:
        parts = self._target.decode(words)
        end = _beginning(parts, len(parts) + 1)
        started = _joined(parts[end:])
        history: list[str] = []
        while end and len(history) < self._history:
            begin = _beginning(parts, end)
            history.append(_joined(parts[begin:end]))
            end = begin
        before = [BEGIN] if len(history) < self._history else []
        return _Context((*before, *reversed(history)), started)

    def _bonuses(self, context: _Context) -> dict[int, float]:
        history, started = context
        found: dict[int, float] = {}
        for word, bonus in self._bonuses_after(history).items():
            rest = word.removeprefix(started) if word.startswith(started) and word != END else ""
            if rest:
                parts = [rest[:size] + JOINER for size in range(1, len(rest))]
                for number in self._target.encode_words([*parts, rest]):
                    found[number] = max(found.get(number, 0.0), bonus)
        found.pop(UNKNOWN_ID, None)
        words = (*history, started) if started else history
        found[END_ID] = self._bonuses_after(words[max(0, len(words) - self._history) :]).get(END, 0.0)
        return found

    def _bonuses_after(self, history: Words) -> dict[str, float]:
        """What each listed word has behind these words."""
        if history not in self._sums:
            self._sums[history] = _sums(self._after, history)
        return self._sums[history]


def _beginning(parts: Sequence[str], end: int) -> int:
    """Where the word begins whose last part, number ``end`` - 1, is written or still to come."""
    begin = end - 1
    while begin and parts[begin - 1].endswith(JOINER):
        begin -= 1
    return begin


def _joined(parts: Sequence[str]) -> str:
    return "".join(part.removesuffix(JOINER) for part in parts)
