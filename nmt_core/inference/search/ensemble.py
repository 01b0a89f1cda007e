"""Several models in one search: an ensemble is one more ``Predictor``.

Its members read sources as each reads them, so that members trained with different source shortlists can be combined.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from nmt_core.base.interfaces import Aligns
from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.inference.search.predictor import ModelPredictor, Prediction, Predictor, block_maxima
from nmt_core.model_directory.ensembles import check_members
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.sentence import Sentence


@dataclass(frozen=True)
class EnsembleState(TensorTree):
    """The memories, or the states, of an ensemble's members."""

    members: tuple[TensorTree, ...]


class Ensemble:
    """Several predictors over one target vocabulary, whose scores are averaged (Montréal's WMT'15 system).

    The combined log-probability is the mean of the members', not renormalised. Attention is the mean over the members
    that have one, and whose rows are of the same words as in the first of them.
    """

    def __init__(self, members: Sequence[Predictor]) -> None:
        self.members, self.device = tuple(members), members[0].device
        self.aligns: Aligns | None = next((one.aligns for one in members if one.aligns is not None), None)

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(map(repr, self.members))})"

    def begin(self, sources: Sequence[Sentence]) -> tuple[TensorTree, TensorTree]:
        """Every member encodes the sources, as it reads them."""
        memories, states = zip(*(member.begin(sources) for member in self.members), strict=True)
        return EnsembleState(memories), EnsembleState(states)

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        """Every member advances; their answers are combined."""
        steps = [
            member.advance(previous_N, its_state, its_memory, layout)
            for member, its_state, its_memory in zip(self.members, state.members, memory.members, strict=True)
        ]
        attentions = [
            step.attention_NS
            for member, step in zip(self.members, steps, strict=True)
            if step.attention_NS is not None and member.aligns == self.aligns
        ]
        scores_NV, normalizer_N = self._combine(steps)
        return Prediction(
            scores_NV,
            block_maxima(scores_NV),
            normalizer_N,
            EnsembleState(tuple(step.state for step in steps)),
            sum(attentions[1:], start=attentions[0]) / len(attentions) if attentions else None,
        )

    def restrict_vocabulary(self, words_C: Tensor) -> Self:
        """Every member over these words alone."""
        restricted = copy.copy(self)
        restricted.members = tuple(member.restrict_vocabulary(words_C) for member in self.members)
        return restricted

    def _combine(self, steps: Sequence[Prediction]) -> tuple[Tensor, Tensor]:
        """The scores of all members together, and their normalizer, which no score is above.

        Both are rounded alike: where no member's score is above its normalizer, no sum is.
        """
        dtype = steps[0].normalizer_N.dtype
        scores_NV, normalizer_N = steps[0].scores_NV.to(dtype, copy=True), steps[0].normalizer_N.clone()
        for step in steps[1:]:
            scores_NV.add_(step.scores_NV)
            normalizer_N.add_(step.normalizer_N)
        return scores_NV.div_(len(steps)), normalizer_N.div_(len(steps))


def make_predictor(models: Sequence[LoadedModel]) -> Predictor:
    """The predictor of one model or of an ensemble, for sources as the first model encodes them.

    It writes in the order of the models. Raises ConfigError when that, or their target words, are not the same.
    """
    check_members(models)
    first = ModelPredictor(models[0].model)
    others = [ModelPredictor(loaded.model, loaded.encode_text) for loaded in models[1:]]
    return Ensemble([first, *others]) if others else first
