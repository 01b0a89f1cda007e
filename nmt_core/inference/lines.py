"""A line to translate with what its translation must have, as text (``SourceLine``) and in ids (``LineRequests``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.base.words import split_words
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.constraints import Constraint, MetConstraint
from nmt_core.inference.search.ngram_guidance import GuidanceInIds, JoinedGuidance, WordGuidance
from nmt_core.inference.search.requests import Request
from nmt_core.inference.search.sampling import number_of_text
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.copying import CopyScheme
from nmt_core.text.sentence import TargetOrder
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
    """Tokenised source text, phrases that its translation contains, and n-gram guidance."""

    text: str
    constraints: tuple[PhraseConstraint, ...] = ()
    guidance: NgramGuidance | None = field(default=None, compare=False)

    def surface(self, words: list[str], met: Sequence[MetConstraint]) -> list[str]:
        """The words of a translation, where words of constraints are written as they were given.

        ``met`` are the constraints met by its hypothesis. Only words unknown to the model differ.
        """
        for one in met:
            phrase = self.constraints[one.constraint].words[one.phrase]
            words[one.first : one.first + one.length] = phrase
        return words


def check_follows_guidance(model: LoadedModel) -> None:
    """Raise ConfigError for a model whose search cannot follow n-gram guidance."""
    if model.config.target_order is TargetOrder.RIGHT_TO_LEFT:
        problem = f"{model.folder} writes {model.config.target_order}"
        raise ConfigError(f"guidance is for models that write from left to right; {problem}")
    if model.copying is not None:
        raise ConfigError(f"guidance is for models of plain text; {model.folder} writes annotated text")


def guidance_in_ids(asked: NgramGuidance, target: Vocabulary) -> GuidanceInIds:
    """The guidance in ids of the models' vocabulary."""
    return JoinedGuidance(asked, target) if asked.joined else WordGuidance(asked, target)


@dataclass(frozen=True)
class LineRequests:
    """Makes the requests of lines; ``model`` is the one that searches, or the first of an ensemble.

    ``candidates``: every search is among some words of the vocabulary alone.
    """

    config: DecodingConfig | SamplingConfig
    model: LoadedModel
    candidates: bool

    def make(self, number: int, line: SourceLine) -> Request[int]:
        """The request of line ``number``, counted from 0, which is its key. Raises ConfigError that names the line."""
        source = self.model.encode_text(line.text)
        by_text = isinstance(self.config, SamplingConfig) and self.config.by_text
        request = Request(number, source, self.config, number=number_of_text(line.text) if by_text else number)
        if not (line.constraints or line.guidance):
            return request
        try:
            return self._ruled(request, line)
        except ConfigError as error:
            raise ConfigError(f"line {number + 1}: {error}") from error

    def _ruled(self, request: Request[int], line: SourceLine) -> Request[int]:
        """The request of a line with constraints or guidance. Raises ConfigError where no search can obey."""
        source = request.source
        if not isinstance(self.config, DecodingConfig):
            raise ConfigError("constraints and guidance are for search, not for sampling")
        if self.model.config.copying is CopyScheme.POSALL:
            raise ConfigError(f"{self.model.folder} (copying: posall) takes no constraints")
        guidance = None if line.guidance is None or not source else self._guidance(line.guidance)
        if not line.constraints:
            return request._replace(guidance=guidance)
        if not source:
            raise ConfigError("has constraints, but no words to translate")
        if not all(phrase for one in line.constraints for phrase in one.words):
            raise ConfigError("a constraint without words")
        constraints = tuple(map(self._constraint, line.constraints))
        request = request._replace(constraints=constraints, guidance=guidance, surface=line.surface)
        _ = request.limit  # a ConfigError where constraints need more words
        return request

    def _guidance(self, asked: NgramGuidance) -> GuidanceInIds:
        if self.candidates:
            raise ConfigError("guidance is for search among all words, not among candidates")
        check_follows_guidance(self.model)
        return guidance_in_ids(asked, self.model.target)

    def _constraint(self, asked: PhraseConstraint) -> Constraint:
        target, order = self.model.target, self.model.config.target_order
        phrases = tuple(tuple(order.words(target.encode(phrase))) for phrase in asked.phrases)
        return Constraint(phrases, asked.log_probs, asked.required)
