"""Shallow fusion (Gülçehre et al. 2015, section 4.1): a neural language model takes part in every step of search.

    score of the next word = log p(y_t | y_<t, x) + weight * log p_LM(y_t | y_<t)

The sum is not renormalised. What search then reports as the log-probability of a translation is this
sum over its words and ``</s>``, no longer log p(y | x): ``nmt-core score`` gives that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.predictor import Advance, Ensemble, ModelPredictor, Predictor, added_up
from nmt_core.model_directory.ensembles import check_same_order
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.build import is_language_model


class FusedLanguageModel(NamedTuple):
    """A neural language model and its weight, from 0 up."""

    loaded: LoadedModel
    weight: float


class ShallowFusion(Ensemble):
    """A predictor of translations and one of the target language, over one target vocabulary."""

    def __init__(self, translation: Predictor, language: Predictor, *, weight: float) -> None:
        super().__init__([translation, language])
        self.weight = weight

    def __repr__(self) -> str:
        translation, language = self.members
        return f"ShallowFusion({translation!r}, {language!r}, weight={self.weight})"

    def _combine(self, steps: Sequence[Advance]) -> tuple[Tensor, Tensor]:
        """The weighted sum of the scores."""
        return added_up(steps, weight=self.weight)


def fuse(translation: Predictor, models: tuple[LoadedModel, ...], language: FusedLanguageModel) -> ShallowFusion:
    """The predictor of ``models`` with a language model beside it.

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
    return ShallowFusion(translation, ModelPredictor(language.loaded.model), weight=language.weight)
