"""What translations of a sentence must have (phrases), and the progress of a hypothesis.

N-gram guidance is known here too, since it depends on the words of a hypothesis as rules do.

Lexical constraints are phrases that a translation must contain (Hokamp and Liu 2017; Post and Vilar 2018). A
constraint has one phrase, or several of which one is taken, each with a log-probability that is added to the
hypothesis that takes it (0 unless given). A constraint that is not ``required`` is an offer: hypotheses that take
it keep places in the beam, and the best score decides. Every word of a translation serves one constraint at most;
where words can be read as phrases in several ways, all are followed, or the best ``MAX_MATCHES``. Equal constraints
are met in their order.

Words are ids of the target vocabulary. Constraints go before ``forbid_unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nmt_core.inference.search.ngram_guidance import GuidanceInIds
from nmt_core.text.vocabulary import END_ID

Words = tuple[int, ...]

MAX_MATCHES = 64  # of one hypothesis


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
    def min_length(self) -> int:
        """The words of the shortest phrase."""
        return min(map(len, self.phrases))


class MetConstraint(NamedTuple):
    """A constraint that is met: its index, the index of its phrase, and the first word and the length of the phrase."""

    constraint: int
    phrase: int
    first: int
    length: int


class Ending(NamedTuple):
    """What rules or a guide say of a whole hypothesis: ``log_prob`` is added to its own before the normalisation.

    ``met`` and ``reached`` are the constraints that it has met, and what its guide has reached.
    """

    log_prob: float = 0.0
    met: tuple[MetConstraint, ...] = ()
    reached: Any = None


NO_RULES = Ending()


class Match(NamedTuple):
    """One way to read a hypothesis: the constraints that its words have met, and the log-probability of the phrases.

    The last ``started`` words begin a phrase of an open constraint. All that can follow depends on these and on
    ``indices``.
    """

    met: tuple[MetConstraint, ...] = ()
    started: int = 0
    log_prob: float = 0.0

    @property
    def indices(self) -> frozenset[int]:
        """The indices of the constraints met."""
        return frozenset(one.constraint for one in self.met)

    @property
    def end(self) -> int:
        """The words up to the end of the last phrase."""
        return self.met[-1].first + self.met[-1].length if self.met else 0

    def tail(self, words: Words) -> Words:
        """The words that begin a phrase."""
        return words[len(words) - self.started :]


@dataclass(frozen=True)
class Progress:
    """The progress of one hypothesis: its words, and the ways to read them as phrases of constraints.

    ``guidance`` is what n-gram guidance has added for its words.
    """

    words: Words = ()
    matches: tuple[Match, ...] = (Match(),)
    guidance: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Rules:
    """What is required of a sentence's translations beyond their score."""

    constraints: tuple[Constraint, ...] = ()
    guidance: GuidanceInIds | None = None

    @property
    def beginning(self) -> Progress:
        """Before the first word."""
        return Progress()

    @property
    def words(self) -> int:
        """The words that the longest phrases have together: one bank of the beam for each number of them, and for 0."""
        return sum(max(map(len, one.phrases)) for one in self.constraints)

    @property
    def min_length(self) -> int:
        """The fewest words of a translation: the words of the required constraints."""
        return self.missing(Progress())

    def extend(self, progress: Progress, word: int) -> Progress:
        """One more word; ``</s>`` adds what guidance says of it and nothing else."""
        if self.guidance is not None:
            value = self.guidance.value(progress.words, word)
            progress = replace(progress, guidance=progress.guidance + value)
        if word == END_ID:
            return progress
        words = (*progress.words, word)
        if not self.constraints:
            return replace(progress, words=words)
        found = _likeliest(new for old in progress.matches for new in self._matches(old, words))
        if len(found) > MAX_MATCHES:
            found = sorted(found, key=lambda one: self._worth(one, words), reverse=True)[:MAX_MATCHES]
        return replace(progress, words=words, matches=_useful(found))

    def _matches(self, old: Match, words: Words) -> Iterator[Match]:
        """The last word ends no phrase, or any phrase that fits."""
        tail = words[len(words) - old.started - 1 :]
        phrases = self._open_phrases(old)
        yield old._replace(started=max((_started(tail, phrase) for _, _, phrase in phrases), default=0))
        for constraint, index, phrase in phrases:
            if tail[-len(phrase) :] == phrase:
                met = MetConstraint(constraint, index, len(words) - len(phrase), len(phrase))
                log_prob = old.log_prob + self.constraints[constraint].log_probs[index]
                yield Match((*old.met, met), log_prob=log_prob)

    def wanted(self, progress: Progress) -> set[int]:
        """The words that start an open constraint, or continue one that is started."""
        found = set()
        for match in progress.matches:
            tail = match.tail(progress.words)
            for _, _, phrase in self._open_phrases(match):
                found.add(phrase[0])
                found.update(phrase[size] for size in range(1, len(phrase)) if tail[-size:] == phrase[:size])
        return found

    def missing(self, progress: Progress) -> int:
        """The fewest words after which all required constraints can be met."""
        return min(self._missing(match, progress.words) for match in progress.matches)

    def bank(self, progress: Progress) -> int:
        """The words of constraints that a hypothesis has: of the ones met, and of the one that is started."""
        return max(
            match.started + sum(max(map(len, self.constraints[index].phrases)) for index in match.indices)
            for match in progress.matches
        )

    def best(self, progress: Progress) -> Match:
        """The match that counts: with the fewest words missing, then most constraints, then the likeliest phrases."""
        if len(progress.matches) == 1:
            return progress.matches[0]
        return max(progress.matches, key=lambda one: self._worth(one, progress.words))

    def log_prob(self, progress: Progress) -> float:
        """The sum of the log-probabilities of the phrases met."""
        return self.best(progress).log_prob

    def ending(self, progress: Progress) -> Ending:
        """What rules and guidance add to the score of a finished hypothesis, which ``</s>`` has been added to."""
        best = self.best(progress)
        return Ending(best.log_prob + progress.guidance, best.met)

    def _worth(self, match: Match, words: Words) -> tuple[int, int, float]:
        return -self._missing(match, words), len(match.met), match.log_prob

    def _missing(self, match: Match, words: Words) -> int:
        tail, met = match.tail(words), match.indices
        missing = most_started = 0
        for index, constraint in enumerate(self.constraints):
            if constraint.required and index not in met:
                remaining = min(len(phrase) - _started(tail, phrase) for phrase in constraint.phrases)
                missing += constraint.min_length
                most_started = max(most_started, constraint.min_length - remaining)
        return missing - most_started

    def _open_phrases(self, match: Match) -> list[tuple[int, int, Words]]:
        """(constraint, index of the phrase, phrase) of the constraints not met; of equal constraints the first."""
        met = match.indices
        first: dict[Constraint, int] = {}
        for index, constraint in enumerate(self.constraints):
            if index not in met:
                first.setdefault(constraint, index)
        return [
            (number, index, phrase)
            for constraint, number in first.items()
            for index, phrase in enumerate(constraint.phrases)
        ]


def _likeliest(matches: Iterable[Match]) -> list[Match]:
    """Of those that can be continued alike the likeliest, of equals the one whose phrases end first."""
    found: dict[tuple[frozenset[int], int], Match] = {}
    for one in matches:
        key = (one.indices, one.started)
        other = found.setdefault(key, one)
        if (one.log_prob, -one.end) > (other.log_prob, -other.end):
            found[key] = one
    return list(found.values())


def _useful(found: Sequence[Match]) -> tuple[Match, ...]:
    """Those that no other one equals or exceeds in all that counts."""
    worth = [(one.indices, one.started, one.log_prob) for one in found]
    return tuple(
        one
        for one, (met, started, log_prob) in zip(found, worth, strict=True)
        if not any(
            met <= other and started <= more and log_prob <= likelier and (met, started) != (other, more)
            for other, more, likelier in worth
        )
    )


def _started(tail: Words, phrase: Words) -> int:
    """The most words at the end of ``tail`` that the phrase begins with (not all of it)."""
    return max((size for size in range(1, len(phrase)) if tail[-size:] == phrase[:size]), default=0)
