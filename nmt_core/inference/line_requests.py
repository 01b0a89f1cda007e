"""What a search is asked for by a line of input: its prefix, constraints and advice, in a model's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramAdvice
from nmt_core.inference.search.bonus import Advice, JoinedAdvice, WordAdvice
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.constraints import Constraint
from nmt_core.inference.search.requests import Request
from nmt_core.inference.source_line import PhraseConstraint, SourceLine
from nmt_core.text.copying import Copying, CopyScheme
from nmt_core.text.sentence import Sentence
from nmt_core.text.target_order import TargetOrder
from nmt_core.text.vocabulary import Vocabulary


def check_follows_advice(order: TargetOrder, copying: Copying | None, folders: str) -> None:
    """Raise ConfigError for models whose search cannot follow advice."""
    problem = None
    if order is TargetOrder.RIGHT_TO_LEFT:
        problem = f"models that write it first; {folders} writes {order}"
    elif copying is not None:
        problem = f"models of plain text; {folders} writes annotated text"
    if problem is not None:
        raise ConfigError(f"advice is for {problem}")


def advice_in_ids(asked: NgramAdvice, target: Vocabulary) -> Advice:
    """The advice in words of the models' vocabulary."""
    kind: type[JoinedAdvice] | type[WordAdvice] = JoinedAdvice if asked.joined else WordAdvice
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
        if not (line.prefix_words or line.constraints or line.advice):
            return Request(number, source, config if isinstance(config, DecodingConfig) else DecodingConfig())
        where = f"line {first + number + 1}"
        if not isinstance(config, DecodingConfig):
            raise ConfigError(f"{where}: a prefix, constraints and advice are for search, not for sampling")
        if self.copying is not None and self.copying.scheme is CopyScheme.POSALL:
            raise ConfigError(f"{where}: {self.folders} (copying: posall) takes no prefix and no constraints")
        advice = None if line.advice is None or not source else self._advice(line.advice, where)
        if not (line.prefix_words or line.constraints):
            return Request(number, source, config, advice=advice)
        self._check_constrained(source, line, where)
        prefix = tuple(self.target.encode_words(self._prefix(source, line)))
        request = Request(number, source, config, prefix, tuple(map(self._constraint, line.constraints)), advice=advice)
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

    def _advice(self, asked: NgramAdvice, where: str) -> Advice:
        """Raises ConfigError for searches that cannot follow it."""
        if self.candidates:
            raise ConfigError(f"{where}: advice is for search among all words, not among candidates")
        try:
            check_follows_advice(self.order, self.copying, self.folders)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        return advice_in_ids(asked, self.target)

    def _constraint(self, asked: PhraseConstraint) -> Constraint:
        phrases = tuple(tuple(self.order.words(self.target.encode(phrase))) for phrase in asked.phrases)
        return Constraint(phrases, asked.log_probs, asked.required)
