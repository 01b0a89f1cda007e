"""What goes into a running search, and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import Aligns
from nmt_core.base.messages import counted
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig, OutputConfig, SamplingConfig
from nmt_core.inference.search.constraints import NO_RULES, Constraint, Ending, MetConstraint, Rules
from nmt_core.inference.search.guided import GuideInIds
from nmt_core.inference.search.ngram_guidance import GuidanceInIds
from nmt_core.text.sentence import Sentence, TargetOrder

Matrix = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Key = TypeVar("Key", bound=Hashable)

_NO_LIMIT = 1 << 40  # words; a guide ends


class Request(NamedTuple, Generic[Key]):
    """A sentence to translate: any ``key`` to know it by, its source, and how to search, or to sample.

    Its translations obey the ``constraints``; or, without these, they are those that a ``guide`` allows, ranked by
    log p and their scores, of any length (``config`` has a ``length_normalization`` of 0 then). ``guidance`` takes part
    in the ranking of hypotheses. ``surface`` puts the words of constraints into a translation as they were given;
    ``number`` seeds the samples.
    """

    key: Key
    source: Sentence
    config: DecodingConfig | SamplingConfig
    constraints: tuple[Constraint, ...] = ()
    guide: GuideInIds | None = None
    guidance: GuidanceInIds | None = None
    surface: Callable[[list[str], Sequence[MetConstraint]], list[str]] | None = None
    number: int = 0

    @property
    def search(self) -> DecodingConfig:
        """How to search, of a sentence that is searched for."""
        assert isinstance(self.config, DecodingConfig)
        return self.config

    @property
    def rules(self) -> Rules | GuideInIds | None:
        """What is required of the translations beyond their lengths; None for nothing."""
        if self.guide is not None:
            return self.guide
        return Rules(self.constraints, self.guidance) if self.constraints or self.guidance else None

    @property
    def target_words(self) -> set[int]:
        """The words of constraints."""
        return {word for one in self.constraints for phrase in one.phrases for word in phrase}

    def with_words(self, ids: Mapping[int, int]) -> Request[Key]:
        """The same with other numbers for the target words."""
        constraints = [
            replace(one, phrases=tuple(tuple(ids[word] for word in phrase) for phrase in one.phrases))
            for one in self.constraints
        ]
        return self._replace(constraints=tuple(constraints))

    @property
    def limit(self) -> int:
        """The most words of a translation. Raises ConfigError where constraints need more."""
        if self.guide is not None:
            return _NO_LIMIT
        limit = self.config.length_limit(len(self.source))
        least = Rules(self.constraints).min_length if self.constraints else 0
        if least > limit:
            needed = counted(least, "word")
            raise ConfigError(f"constraints need {needed}; a translation may have {limit} (see max_length_ratio)")
        return limit


class EncodedRequests(NamedTuple, Generic[Key]):
    """Sentences that may enter a search, with their memories and first states."""

    requests: Sequence[Request[Key]]
    memory: TensorTree
    state: TensorTree

    @torch.inference_mode()
    def split(self, free: float, *, min_count: int) -> tuple[EncodedRequests[Key] | None, EncodedRequests[Key] | None]:
        """The first of them that fit into so many ``free`` tokens, at least ``min_count``, and the others."""
        ends = np.cumsum([(len(one.source) + 1) * max(1.0, one.search.beam / USUAL_ROWS) for one in self.requests])
        count = max(int(np.searchsorted(ends, free, side="right")), min_count)
        if not 0 < count < len(self.requests):
            return (self, None) if count else (None, self)
        parts = torch.arange(len(self.requests), device=self.state.example.device).tensor_split([count])
        requests = (self.requests[:count], self.requests[count:])
        first, rest = (
            EncodedRequests(own, self.memory.select(rows), self.state.select(rows))
            for own, rows in zip(requests, parts, strict=True)
        )
        return first, rest


@dataclass(frozen=True)
class Hypothesis:
    """A whole target sentence as a model sees it.

    ``words`` are ids without ``</s>``; ``word_log_probs`` (natural logarithms) has one number per
    word and one for ``</s>``, and ``log_prob`` is their sum, log p(y | x). ``score`` is what
    hypotheses of one source are ranked by. ``attention`` has a row per target word and one for
    ``</s>``, a column per source word and one for ``</s>``; None where it was not requested or the
    model has none. ``met`` says where the constraints of the search were met, ``reached`` is what its guide reached
    with it. The words of a search are in the order in which the model writes.
    """

    words: tuple[int, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    attention: Matrix | None = field(default=None, compare=False)
    met: tuple[MetConstraint, ...] = ()
    reached: Any = field(default=None, compare=False)

    def in_text_order(self, order: TargetOrder, aligns: Aligns) -> Hypothesis:
        """The hypothesis of a model that writes in this order, in the order of the text."""
        words = len(self.words)
        rows = order.attention(range(words + 1), aligns)
        return replace(
            self,
            words=tuple(order.words(self.words)),
            word_log_probs=tuple(order.rows(self.word_log_probs)),
            attention=None if self.attention is None else self.attention[rows],
            met=tuple(one._replace(first=order.place(one.first, length=one.length, words=words)) for one in self.met),
        )


def make_hypothesis(
    words: Sequence[int],
    word_log_probs: Sequence[float],
    *,
    config: OutputConfig,
    attention: Matrix | None = None,
    ending: Ending = NO_RULES,
) -> Hypothesis:
    """Sum up the words' log-probabilities and work out the score."""
    log_prob = math.fsum(word_log_probs)
    score = config.normalized(log_prob + ending.log_prob, length=len(word_log_probs))
    return Hypothesis(tuple(words), log_prob, score, tuple(word_log_probs), attention, ending.met, ending.reached)


class Finished(NamedTuple, Generic[Key]):
    """The best hypotheses of a sentence, best first, at most ``nbest``; or its samples in the order drawn.

    There are none where the model's numbers are not probabilities, or where no hypothesis obeys the rules.
    """

    request: Request[Key]
    hypotheses: Sequence[Hypothesis]
    constrained: bool = False

    def with_words(self, ids: Sequence[int]) -> Finished[Key]:
        """With the words' ``ids``, after a search in which a word's number was its position among them."""
        return self._replace(
            hypotheses=[replace(one, words=tuple(ids[place] for place in one.words)) for one in self.hypotheses]
        )


def checked(done: Finished[Key], name: str = "") -> Sequence[Hypothesis]:
    """The hypotheses of a sentence; ``name`` begins errors.

    Raises ModelError, or with constraints ConfigError, when there are none.
    """
    if not done.hypotheses:
        if done.constrained:
            raise ConfigError(f"{name}no translation was found that obeys constraints and lengths together")
        raise ModelError("the model's probabilities are not numbers: its training diverged or its files are damaged")
    return done.hypotheses
