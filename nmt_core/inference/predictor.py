"""The next word's probabilities, from one model or from several: search and sampling never know which.

An ensemble is one more Predictor. Its members read sources made with one joint source vocabulary;
each turns the ids into its own, so that members trained with different source shortlists go together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from nmt_core.data.batching import Padded
from nmt_core.errors import ConfigError
from nmt_core.models.interface import Rows, TranslationModel
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN_ID, Vocabulary


class Advance(NamedTuple):
    """One step: natural-log probabilities of the next word, the new state, and where the model looked (or None)."""

    log_probs_NV: Tensor
    state: Rows
    attention_NS: Tensor | None


class Predictor(Protocol):
    """Anything that says, hypothesis by hypothesis, how likely every next word is."""

    @property
    def device(self) -> torch.device:
        """Where sources and words have to be."""
        ...

    def begin(self, source: Padded) -> tuple[Rows, Rows]:
        """Memory of B sources, and the state of one hypothesis each before its first word."""
        ...

    def advance(self, previous_N: Tensor, state: Any, memory: Any) -> Advance:
        """Read the words produced last (``NO_WORD`` at the beginning) and look at the next."""
        ...


class ModelPredictor:
    """One model. ``source_ids`` turns ids of a joint source vocabulary into the model's own (None: they are)."""

    def __init__(self, model: TranslationModel, source_ids: Sequence[int] | None = None) -> None:
        self.model = model
        self._source_ids = None if source_ids is None else torch.tensor(source_ids, device=model.device)

    def __repr__(self) -> str:
        return f"ModelPredictor({type(self.model).__name__})"

    @property
    def device(self) -> torch.device:
        """Where the model's parameters are."""
        return self.model.device

    def begin(self, source: Padded) -> tuple[Rows, Rows]:
        """Encode the sources."""
        if self._source_ids is not None:
            source = Padded(self._source_ids[source.words_BL], source.mask_BL)
        memory = self.model.encode(source)
        return memory, self.model.start(memory)

    def advance(self, previous_N: Tensor, state: Any, memory: Any) -> Advance:
        """One decoder step and the softmax over all words."""
        step = self.model.step(previous_N, state, memory)
        return Advance(self.model.log_probs(step.readout_NL), step.state, step.attention_NS)


@dataclass(frozen=True)
class Together(Rows):
    """The memories, or the states, of an ensemble's members."""

    members: tuple[Rows, ...]

    def _map(self, change: object) -> Together:
        return Together(tuple(member._map(change) for member in self.members))

    def _values(self) -> list[Tensor | Rows | None]:
        return list(self.members)


class Ensemble:
    """Several predictors over one target vocabulary.

    The combined log-probability is the mean of the members' (as in the Montréal system, WMT'15; not
    renormalised), or with ``average="probabilities"`` the logarithm of the mean of their
    probabilities. Attention is the mean over the members that have one.
    """

    def __init__(self, members: Sequence[Predictor], *, average: str = "log-probabilities") -> None:
        if not members:
            raise ConfigError("an ensemble needs at least one model")
        if average not in ("log-probabilities", "probabilities"):
            raise ConfigError(f"ensembles average log-probabilities or probabilities, not {average!r}")
        self.members = tuple(members)
        self.average = average

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(map(repr, self.members))}, average={self.average})"

    @property
    def device(self) -> torch.device:
        """The members' device (they share one)."""
        return self.members[0].device

    def begin(self, source: Padded) -> tuple[Rows, Rows]:
        """Every member encodes the sources."""
        begun = [member.begin(source) for member in self.members]
        return Together(tuple(memory for memory, _ in begun)), Together(tuple(state for _, state in begun))

    def advance(self, previous_N: Tensor, state: Any, memory: Any) -> Advance:
        """Every member advances; their answers are averaged."""
        steps = [
            member.advance(previous_N, its_state, its_memory)
            for member, its_state, its_memory in zip(self.members, state.members, memory.members, strict=True)
        ]
        attentions = [step.attention_NS for step in steps if step.attention_NS is not None]
        return Advance(
            self._combine([step.log_probs_NV for step in steps]),
            Together(tuple(step.state for step in steps)),
            sum(attentions[1:], start=attentions[0]) / len(attentions) if attentions else None,
        )

    def _combine(self, log_probs: Sequence[Tensor]) -> Tensor:
        if self.average == "probabilities":
            return torch.stack(list(log_probs)).logsumexp(dim=0) - math.log(len(log_probs))
        return sum(log_probs[1:], start=log_probs[0]) / len(log_probs)


def joint_vocabulary(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """The words of all the vocabularies; the first itself when they are alike."""
    first = vocabularies[0]
    if all(vocabulary.words == first.words for vocabulary in vocabularies):
        return first
    ordinary = (word for vocabulary in vocabularies for word in vocabulary.words[len(SPECIAL_WORDS) :])
    return Vocabulary([*SPECIAL_WORDS, *dict.fromkeys(ordinary)])


def ids_in(vocabulary: Vocabulary, joint: Vocabulary) -> list[int] | None:
    """For every word of ``joint`` its id in ``vocabulary`` (or ``<unk>``'s); None when both are alike."""
    if vocabulary.words == joint.words:
        return None
    known = {word: number for number, word in enumerate(vocabulary.words)}
    return [known.get(word, UNKNOWN_ID) for word in joint.words]
