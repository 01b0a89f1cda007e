"""What one sentence's translations must have (a prefix, phrases, no repeated n-grams), and how far a hypothesis is.

Advice (``advice``), n-grams that count something, is known here too: both go by the words of a hypothesis.

Lexical constraints are phrases that a translation must contain (Hokamp and Liu 2017; Post and Vilar 2018). A
constraint has one phrase, or several of which one is taken, each with a log-probability that is added to the
hypothesis that takes it (0 unless given). A constraint that is not ``required`` is an offer: hypotheses that take
it keep places in the beam, and the best score decides. Every word of a translation serves one constraint at most;
where words can be read as phrases in several ways, all are followed, or the best ``MOST_READINGS``. Equal constraints
are met in their order.

Words are ids of the target vocabulary. Prefix and constraints go before ``forbid_unknown`` and ``no_repeat_ngram``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nmt_core.inference.search.hypothesis import Matrix, Placed
from nmt_core.inference.search.ngram_guidance import Advice
from nmt_core.text.vocabulary import END_ID

Words = tuple[int, ...]

MOST_READINGS = 64  # of one hypothesis


@dataclass(frozen=True)
class Constraint:
    """Alternative phrases (each of at least one word), with natural-log probabilities of at most 0."""

    phrases: tuple[Words, ...]
    log_probs: tuple[float, ...] = ()
    required: bool = True

    def __post_init__(self) -> None:
        if not self.phrases or not all(self.phrases):
            raise ValueError("a constraint needs at least one phrase of at least one word")
        if not self.log_probs:
            object.__setattr__(self, "log_probs", (0.0,) * len(self.phrases))
        if len(self.log_probs) != len(self.phrases) or max(self.log_probs) > 0:
            raise ValueError("a constraint needs one log-probability of at most 0 for each phrase")

    @property
    def least(self) -> int:
        """The words of the shortest phrase."""
        return min(map(len, self.phrases))


class Reading(NamedTuple):
    """One way to see a hypothesis: the constraints that its words have met, and the log-probability of the phrases.

    The last ``begun`` words begin a phrase of an open constraint. All that can follow depends on ``met`` and ``begun``.
    """

    taken: tuple[Placed, ...] = ()
    begun: int = 0
    log_prob: float = 0.0

    @property
    def met(self) -> frozenset[int]:
        """The numbers of the constraints met."""
        return frozenset(one.constraint for one in self.taken)

    @property
    def since(self) -> int:
        """The words up to the end of the last phrase."""
        return self.taken[-1].first + self.taken[-1].length if self.taken else 0

    def tail(self, words: Words) -> Words:
        """The words that begin a phrase."""
        return words[len(words) - self.begun :]


@dataclass(frozen=True)
class Progress:
    """How far one hypothesis has come: its words, and in how many ways they may be read as phrases of constraints.

    ``coverage_S`` is the attention that each source position has had, where it is asked for; ``advised`` is what its
    words have of the advice.
    """

    words: Words = ()
    readings: tuple[Reading, ...] = (Reading(),)
    coverage_S: Matrix | None = field(default=None, compare=False)
    advised: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Rules:
    """What is asked of a sentence's translations beyond their score."""

    prefix: Words = ()
    constraints: tuple[Constraint, ...] = ()
    no_repeat_ngram: int = 0
    coverage: bool = False
    advice: Advice | None = None

    def __bool__(self) -> bool:
        return bool(self.prefix or self.constraints or self.no_repeat_ngram or self.coverage or self.advice)

    @property
    def words(self) -> int:
        """The words that the longest phrases have together: one bank of the beam for each number of them, and for 0."""
        return sum(max(map(len, one.phrases)) for one in self.constraints)

    @property
    def least(self) -> int:
        """The fewest words of a translation: the prefix, and the required constraints that are not in it."""
        return len(self.prefix) + self.missing(self.after_prefix())

    def after_prefix(self) -> Progress:
        """Where a hypothesis stands that has the prefix."""
        progress = Progress()
        for word in self.prefix:
            progress = self.extend(progress, word)
        return progress

    def extend(self, progress: Progress, word: int) -> Progress:
        """One more word (not ``</s>``)."""
        words = (*progress.words, word)
        if self.advice is not None:
            progress = replace(progress, advised=self.advised(progress, word))
        if not self.constraints:
            return replace(progress, words=words)
        found = _likeliest(new for old in progress.readings for new in self._readings(old, words))
        if len(found) > MOST_READINGS:
            found = sorted(found, key=lambda one: self._worth(one, words), reverse=True)[:MOST_READINGS]
        return replace(progress, words=words, readings=_useful(found))

    def _readings(self, old: Reading, words: Words) -> Iterator[Reading]:
        """The last word is not the end of a phrase, or that of any phrase that fits."""
        tail = words[len(words) - old.begun - 1 :]
        phrases = self._open_phrases(old)
        yield old._replace(begun=max((_begun(tail, phrase) for _, _, phrase in phrases), default=0))
        for number, place, phrase in phrases:
            if tail[-len(phrase) :] == phrase:
                placed = Placed(number, place, len(words) - len(phrase), len(phrase))
                log_prob = old.log_prob + self.constraints[number].log_probs[place]
                yield Reading((*old.taken, placed), log_prob=log_prob)

    def advised(self, progress: Progress, word: int) -> float:
        """What advice adds to the log-probability of a hypothesis with one more word, ``</s>`` among them."""
        return progress.advised + (0.0 if self.advice is None else self.advice.value(progress.words, word))

    @property
    def advice_constant(self) -> float:
        """What advice takes off every word."""
        return 0.0 if self.advice is None else self.advice.constant

    def forced(self, progress: Progress) -> int | None:
        """The only word that may follow, if there is one."""
        place = len(progress.words)
        return self.prefix[place] if place < len(self.prefix) else None

    def wanted(self, progress: Progress) -> set[int]:
        """The words that begin an open constraint, or continue one that is begun."""
        found = set()
        for reading in progress.readings:
            tail = reading.tail(progress.words)
            for _, _, phrase in self._open_phrases(reading):
                found.add(phrase[0])
                found.update(phrase[size] for size in range(1, len(phrase)) if tail[-size:] == phrase[:size])
        return found

    def blocked(self, progress: Progress) -> set[int]:
        """The words that would repeat an n-gram, and ``</s>`` while a required constraint is open."""
        found = {END_ID} if self.missing(progress) else set()
        size, words = self.no_repeat_ngram, progress.words
        if size and len(words) >= size:
            last = words[len(words) - size + 1 :]
            found.update(
                words[first + size - 1]
                for first in range(len(words) - size + 1)
                if words[first : first + size - 1] == last
            )
        return found

    def missing(self, progress: Progress) -> int:
        """The fewest words after which all required constraints can be met."""
        return min(self._missing(reading, progress.words) for reading in progress.readings)

    def bank(self, progress: Progress) -> int:
        """The words of constraints that a hypothesis has: those met, and those of the one that is begun."""
        return max(
            reading.begun + sum(max(map(len, self.constraints[number].phrases)) for number in reading.met)
            for reading in progress.readings
        )

    def best(self, progress: Progress) -> Reading:
        """The reading that counts: with the fewest words missing, then most constraints, then the likeliest phrases."""
        if len(progress.readings) == 1:
            return progress.readings[0]
        return max(progress.readings, key=lambda one: self._worth(one, progress.words))

    def log_prob(self, progress: Progress) -> float:
        """The sum of the log-probabilities of the phrases taken."""
        return self.best(progress).log_prob

    def _worth(self, reading: Reading, words: Words) -> tuple[int, int, float]:
        return -self._missing(reading, words), len(reading.taken), reading.log_prob

    def _missing(self, reading: Reading, words: Words) -> int:
        tail = reading.tail(words)
        least = most_begun = 0
        for number, constraint in enumerate(self.constraints):
            if constraint.required and number not in reading.met:
                remaining = min(len(phrase) - _begun(tail, phrase) for phrase in constraint.phrases)
                least, most_begun = least + constraint.least, max(most_begun, constraint.least - remaining)
        return least - most_begun

    def _open_phrases(self, reading: Reading) -> list[tuple[int, int, Words]]:
        """(constraint, number of the phrase, phrase) of the constraints not met; of equal ones those of the first."""
        met = reading.met
        numbers: dict[Constraint, int] = {}
        for number, constraint in enumerate(self.constraints):
            if number not in met:
                numbers.setdefault(constraint, number)
        return [
            (number, place, phrase)
            for constraint, number in numbers.items()
            for place, phrase in enumerate(constraint.phrases)
        ]


def _likeliest(readings: Iterable[Reading]) -> list[Reading]:
    """Of those that can go on alike the likeliest, of equals the one whose phrases end first."""
    found: dict[tuple[frozenset[int], int], Reading] = {}
    for one in readings:
        other = found.setdefault((one.met, one.begun), one)
        if (one.log_prob, -one.since) > (other.log_prob, -other.since):
            found[one.met, one.begun] = one
    return list(found.values())


def _useful(found: Sequence[Reading]) -> tuple[Reading, ...]:
    """Those that no other one equals or exceeds in all that counts."""
    worth = [(one.met, one.begun, one.log_prob) for one in found]
    return tuple(
        one
        for one, (met, begun, log_prob) in zip(found, worth, strict=True)
        if not any(
            met <= other and begun <= more and log_prob <= likelier and (met, begun) != (other, more)
            for other, more, likelier in worth
        )
    )


def _begun(tail: Words, phrase: Words) -> int:
    """The most words at the end of ``tail`` that the phrase begins with (not all of it)."""
    return max((size for size in range(1, len(phrase)) if tail[-size:] == phrase[:size]), default=0)


def covered(progress: Progress, attention_S: Matrix) -> Progress:
    """With the attention of one more target word, over the source words without ``</s>``."""
    before_S = 0.0 if progress.coverage_S is None else progress.coverage_S
    return replace(progress, coverage_S=before_S + attention_S.astype(np.float64))


def coverage_term(progress: Progress) -> float:
    """Σ_i log min(Σ_j a_ji, 1), Wu et al. 2016, equation 14."""
    if progress.coverage_S is None:
        return 0.0
    least = np.finfo(np.float64).tiny
    return float(np.log(np.clip(progress.coverage_S, least, 1.0)).sum())
