"""A line to translate with what its translation must have, as text (``SourceLine``) and in ids (``LineRequests``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.base.words import split_words
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.constraints import Constraint
from nmt_core.inference.search.hypothesis import MetConstraint
from nmt_core.inference.search.ngram_guidance import GuidanceInIds, JoinedGuidance, WordGuidance
from nmt_core.inference.search.requests import Request
from nmt_core.text.copying import Copying, CopyScheme
from nmt_core.text.sentence import Sentence, TargetOrder
from nmt_core.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class PhraseConstraint:
    """Alternative target phrases of which the translation has one; see ``search.constraints.Constraint`` for the rest.

    Phrases are tokenised text in the words of the model. A word that the model does not know stands where the model
    writes ``<unk>``. Alternatives are kept in one order, whatever order they are given in: the likeliest first, of
    equals by their text.
    """

    phrases: tuple[str, ...]
    log_probs: tuple[float, ...] = ()
    required: bool = True

    def __post_init__(self) -> None:
        pairs = zip(self.log_probs or (0.0,) * len(self.phrases), self.phrases, strict=True)
        ordered = sorted(pairs, key=lambda one: (-one[0], one[1]))
        object.__setattr__(self, "phrases", tuple(phrase for _, phrase in ordered))
        object.__setattr__(self, "log_probs", tuple(value for value, _ in ordered) if self.log_probs else ())

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of the phrases."""
        return tuple(tuple(split_words(phrase)) for phrase in self.phrases)


@dataclass(frozen=True)
class SourceLine:
    """Tokenised source text: the words its translation begins with, phrases that it contains, and n-gram guidance."""

    text: str
    prefix: str = ""
    constraints: tuple[PhraseConstraint, ...] = ()
    guidance: NgramGuidance | None = field(default=None, compare=False)

    @property
    def prefix_words(self) -> tuple[str, ...]:
        """The words of the prefix."""
        return tuple(split_words(self.prefix))

    def surface(self, words: list[str], met: Sequence[MetConstraint]) -> list[str]:
        """The words of a translation with those of prefix and constraints as they were given.

        ``met`` are the constraints met by its hypothesis. Only words unknown to the model differ.
        """
        words = [*self.prefix_words, *words[len(self.prefix_words) :]]
        for one in met:
            phrase = self.constraints[one.constraint].words[one.phrase]
            words[one.first : one.first + one.length] = phrase
        return words


def check_follows_guidance(order: TargetOrder, copying: Copying | None, folders: str) -> None:
    """Raise ConfigError for models whose search cannot follow advice."""
    problem = None
    if order is TargetOrder.RIGHT_TO_LEFT:
        problem = f"models that write it first; {folders} writes {order}"
    elif copying is not None:
        problem = f"models of plain text; {folders} writes annotated text"
    if problem is not None:
        raise ConfigError(f"advice is for {problem}")


def guidance_in_ids(asked: NgramGuidance, target: Vocabulary) -> GuidanceInIds:
    """The guidance in ids of the models' vocabulary."""
    kind: type[JoinedGuidance] | type[WordGuidance] = JoinedGuidance if asked.joined else WordGuidance
    return kind(asked.posteriors, target, weight=asked.weight, factors=asked.factors)


@dataclass(frozen=True)
class LineRequests:
    """Makes them for models with one target vocabulary, order and copying; messages name their ``folders``.

    ``candidates``: every search is among some words of the vocabulary alone.
    """

    config: DecodingConfig | SamplingConfig
    target: Vocabulary
    order: TargetOrder
    copying: Copying | None
    candidates: bool
    folders: str

    def make(self, number: int, source: Sentence, line: SourceLine, first: int) -> Request[int]:
        """That of line ``first + number``, counted from 0. Raises ConfigError, with its number, for what cannot be."""
        config = self.config
        if not (line.prefix_words or line.constraints or line.guidance):
            return Request(number, source, config if isinstance(config, DecodingConfig) else DecodingConfig())
        where = f"line {first + number + 1}"
        if not isinstance(config, DecodingConfig):
            raise ConfigError(f"{where}: a prefix, constraints and advice are for search, not for sampling")
        if self.copying is not None and self.copying.scheme is CopyScheme.POSALL:
            raise ConfigError(f"{where}: {self.folders} (copying: posall) takes no prefix and no constraints")
        guidance = None if line.guidance is None or not source else self._guidance(line.guidance, where)
        if not (line.prefix_words or line.constraints):
            return Request(number, source, config, guidance=guidance)
        self._check_constrained(source, line, where)
        prefix = tuple(self.target.encode_words(self._prefix(source, line)))
        request = Request(
            number, source, config, prefix, tuple(map(self._constraint, line.constraints)), guidance=guidance
        )
        try:
            _ = request.limit
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        return request

    def _prefix(self, source: Sentence, line: SourceLine) -> Sequence[str]:
        """As the models write it."""
        if self.copying is None:
            return line.prefix_words
        return self.copying.read_target(source.words, line.prefix_words)

    def _check_constrained(self, source: Sentence, line: SourceLine, where: str) -> None:
        """Raises ConfigError for a prefix and constraints that no search can meet."""
        if not source:
            raise ConfigError(f"{where}: has a prefix or constraints, but no words to translate")
        if not all(phrase for one in line.constraints for phrase in one.words):
            raise ConfigError(f"{where}: a constraint without words")
        if line.prefix_words and self.order is TargetOrder.RIGHT_TO_LEFT:
            raise ConfigError(
                f"{where}: a prefix is for models that write it first; {self.folders} writes {self.order}"
            )

    def _guidance(self, asked: NgramGuidance, where: str) -> GuidanceInIds:
        """Raises ConfigError for searches that cannot follow it."""
        if self.candidates:
            raise ConfigError(f"{where}: advice is for search among all words, not among candidates")
        try:
            check_follows_guidance(self.order, self.copying, self.folders)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        return guidance_in_ids(asked, self.target)

    def _constraint(self, asked: PhraseConstraint) -> Constraint:
        phrases = tuple(tuple(self.order.words(self.target.encode(phrase))) for phrase in asked.phrases)
        return Constraint(phrases, asked.log_probs, asked.required)
