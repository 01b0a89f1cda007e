"""Several models in one search: ensembles, and shallow fusion.

An ensemble is one more ``Predictor``. Its members read sources as each reads them, so that members trained with
different source shortlists can be combined.

Shallow fusion (Gülçehre et al. 2015, section 4.1): a neural language model takes part in every step of search.

    score of the next word = log p(y_t | y_<t, x) + weight * log p_LM(y_t | y_<t)

The sum is not renormalised. What search then reports as the log-probability of a translation is this
sum over its words and ``</s>``, no longer log p(y | x): ``nmt-core score`` gives that.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns
from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.inference.search.predictor import ModelPredictor, Prediction, Predictor, block_maxima
from nmt_core.model_directory.ensembles import check_members, check_same_order
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.build import is_language_model
from nmt_core.text.sentence import Sentence


@dataclass(frozen=True)
class EnsembleState(TensorTree):
    """The memories, or the states, of an ensemble's members."""

    members: tuple[TensorTree, ...]


class Ensemble:
    """Several predictors over one target vocabulary, whose scores are averaged (Montréal's WMT'15 system).

    The combined log-probability is the mean of the members', not renormalised; with a ``language_weight`` it is the
    translation model's plus the weight times the language model's. Attention is the mean over the members that have
    one, and whose rows are of the same words as in the first of them.
    """

    def __init__(self, members: Sequence[Predictor], *, language_weight: float | None = None) -> None:
        self.members, self.device = tuple(members), members[0].device
        self.language_weight = language_weight
        self.aligns: Aligns | None = next((one.aligns for one in members if one.aligns is not None), None)

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(map(repr, self.members))}, language_weight={self.language_weight})"

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
        weight = 1.0 if self.language_weight is None else self.language_weight
        dtype = steps[0].normalizer_N.dtype
        scores_NV, normalizer_N = steps[0].scores_NV.to(dtype, copy=True), steps[0].normalizer_N.clone()
        for step in steps[1:]:
            scores_NV.add_(step.scores_NV, alpha=weight)
            normalizer_N.add_(step.normalizer_N, alpha=weight)
        if self.language_weight is None:
            return scores_NV.div_(len(steps)), normalizer_N.div_(len(steps))
        return scores_NV, normalizer_N


def make_predictor(models: Sequence[LoadedModel]) -> Predictor:
    """The predictor of one model or of an ensemble, for sources as the first model encodes them.

    It writes in the order of the models. Raises ConfigError when that, or their target words, are not the same.
    """
    check_members(models)
    first = ModelPredictor(models[0].model)
    others = [ModelPredictor(loaded.model, loaded.encode_text) for loaded in models[1:]]
    return Ensemble([first, *others]) if others else first


class FusedLanguageModel(NamedTuple):
    """A neural language model and its weight, from 0 up."""

    loaded: LoadedModel
    weight: float


def fuse(translation: Predictor, models: tuple[LoadedModel, ...], language: FusedLanguageModel) -> Ensemble:
    """The predictor of ``models`` together with a language model.

    Raises ConfigError when that is none, or not one of the same target words in the same order.
    """
    folder = language.loaded.folder
    if not is_language_model(language.loaded.config.model):
        raise ConfigError(
            f"{folder}: is no language model; fusion needs a model of type rnnlm or cslm (nmt-core train)"
        )
    if language.loaded.target.words != models[0].target.words:
        raise ConfigError(
            f"{folder} and {models[0].folder} have different target vocabularies; train the language model with "
            f"data.target_vocabulary: {models[0].folder}/target.vocab"
        )
    check_same_order(models[0], language.loaded)
    return Ensemble([translation, ModelPredictor(language.loaded.model)], language_weight=language.weight)
