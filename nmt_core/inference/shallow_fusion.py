"""Shallow fusion (Gülçehre et al. 2015, section 4.1): a neural language model takes part in every step of search.

    score of the next word = log p(y_t | y_<t, x) + weight * log p_LM(y_t | y_<t)

The sum is not renormalised. What search then reports as the log-probability of a translation is this
sum over its words and ``</s>``, no longer log p(y | x): ``nmt-core score`` gives that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt_core.data.layout import Layout
from nmt_core.errors import ConfigError
from nmt_core.inference.predictor import Advance, EnsembleState, ModelPredictor, Predictor
from nmt_core.inference.selection import block_maxima
from nmt_core.interfaces import Aligns
from nmt_core.models.build import is_language_model
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.models.ensembles import check_same_order
from nmt_core.models.rows import Rows
from nmt_core.text.sentence import Sentence


class FusedLanguageModel(NamedTuple):
    """A neural language model and its weight, from 0 up."""

    loaded: LoadedModel
    weight: float


class ShallowFusion:
    """A predictor of translations and one of the target language, over one target vocabulary."""

    def __init__(self, translation: Predictor, language: Predictor, *, weight: float) -> None:
        self.translation, self.language, self.weight = translation, language, weight

    def __repr__(self) -> str:
        return f"ShallowFusion({self.translation!r}, {self.language!r}, weight={self.weight})"

    @property
    def device(self) -> torch.device:
        """Both predictors' device."""
        return self.translation.device

    @property
    def aligns(self) -> Aligns | None:
        """As the translation's."""
        return self.translation.aligns

    def collate(self, sources: Sequence[Sentence]) -> tuple[Any, Any]:
        """What each of both reads."""
        return self.translation.collate(sources), self.language.collate(sources)

    def begin(self, source: tuple[Any, Any]) -> tuple[Rows, Rows]:
        """Both begin."""
        memory, state = self.translation.begin(source[0])
        language_memory, language_state = self.language.begin(source[1])
        return EnsembleState((memory, language_memory)), EnsembleState((state, language_state))

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Advance:
        """Both advance; the scores are added up, the attention is the translation's."""
        states, memories = state.members, memory.members
        step = self.translation.advance(previous_N, states[0], memories[0], layout)
        language_step = self.language.advance(previous_N, states[1], memories[1], layout)
        normalizer_N = step.normalizer_N + self.weight * language_step.normalizer_N
        scores_NV = step.scores_NV.to(normalizer_N.dtype).add_(language_step.scores_NV, alpha=self.weight)
        return Advance(
            scores_NV,
            block_maxima(scores_NV),
            normalizer_N,
            EnsembleState((step.state, language_step.state)),
            step.attention_NS,
        )

    def restrict_vocabulary(self, words_C: Tensor) -> ShallowFusion:
        """Both over these words alone."""
        return ShallowFusion(
            self.translation.restrict_vocabulary(words_C),
            self.language.restrict_vocabulary(words_C),
            weight=self.weight,
        )


def fuse(translation: Predictor, models: tuple[LoadedModel, ...], language: FusedLanguageModel) -> ShallowFusion:
    """The predictor of ``models`` with a language model beside it.

    Raises ConfigError when that is none, or not one of the same target words in the same order.
    """
    folder = language.loaded.folder
    if not is_language_model(language.loaded.config.model):
        raise ConfigError(
            f"{folder}: is no language model; fusion needs a model of type rnnlm or cslm (nmt-core train-lm)"
        )
    if language.loaded.target.words != models[0].target.words:
        raise ConfigError(
            f"{folder} and {models[0].folder} have different target vocabularies; train the language model with "
            f"data.target_vocabulary: {models[0].folder}/target.vocab"
        )
    check_same_order(models[0], language.loaded)
    return ShallowFusion(translation, ModelPredictor(language.loaded.model), weight=language.weight)
