"""Which config makes which model: the one table that a new model is added to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import torch
from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.config import Config
from nmt_core.layers.init import initialise
from nmt_core.models.cslm import CSLM, CSLMConfig
from nmt_core.models.deep_fusion import DeepFusion, DeepFusionConfig
from nmt_core.models.deep_lstm import DeepLSTM, DeepLSTMConfig
from nmt_core.models.hybrid import Hybrid, HybridConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.models.nematus import Nematus, NematusConfig
from nmt_core.models.rnnencdec import RNNencdec, RNNencdecConfig
from nmt_core.models.rnnlm import RNNLM, RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig

AnyConfig = (
    RNNencdecConfig
    | RNNsearchConfig
    | RNNLMConfig
    | CSLMConfig
    | DeepFusionConfig
    | DeepLSTMConfig
    | HybridConfig
    | NematusConfig
)
ModelConfig = Annotated[AnyConfig, Field(discriminator="type")]
_BESIDE_PARAMETERS = frozenset(
    {
        "aligns",
        "cell",
        "longest_spelling",
        "order",
        "radius",
        "reset",
        "reverse",
        "source_characters",
        "target_characters",
        "window",
    }
)


def settings_beside_parameters(config: Config) -> dict[str, Any]:
    """The settings that change numbers or alignments and that no name or shape of a parameter shows.

    Those that have their default value are left out.
    """
    found: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Config):
            found |= {f"{name}.{key}": inner for key, inner in settings_beside_parameters(value).items()}
        elif name in _BESIDE_PARAMETERS and value != field.default:
            found[name] = value
    return found


def source_factors(config: AnyConfig) -> int:
    """How many factors it reads beside each source word."""
    return len(getattr(config, "source_factors", ()))


def build_model(
    config: AnyConfig, source_words: int, target_words: int, factor_words: Sequence[int] = ()
) -> TranslationModel:
    """A model for vocabularies of these sizes, one for each source factor too; its parameters are not initialised."""
    match config:
        case RNNencdecConfig():
            return RNNencdec(config, source_words, target_words, factor_words)
        case RNNsearchConfig():
            return RNNsearch(config, source_words, target_words, factor_words)
        case RNNLMConfig():
            return RNNLM(config, target_words)
        case CSLMConfig():
            return CSLM(config, target_words)
        case DeepFusionConfig():
            return DeepFusion(config, source_words, target_words, factor_words)
        case DeepLSTMConfig():
            return DeepLSTM(config, source_words, target_words, factor_words)
        case HybridConfig():
            return Hybrid(config, source_words, target_words)
        case NematusConfig():
            return Nematus(config, source_words, target_words)


def without_numbers(config: AnyConfig, sizes: Sequence[int]) -> TranslationModel:
    """A model that takes no memory (on PyTorch's device ``meta``); ``sizes`` are the sizes of its vocabularies.

    Raises ConfigError where this machine could not hold its parameters.
    """
    try:
        with torch.device("meta"):
            model = build_model(config, sizes[0], sizes[1], sizes[2:])
    except (RuntimeError, OverflowError, TypeError) as error:
        raise ConfigError("model: has a size that is beyond any memory") from error
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        raise ConfigError(f"model: has {size / 1e9:,.1f} GB; this machine has a memory of {memory / 1e9:,.1f} GB")
    return model


def new_model(
    config: AnyConfig, source_words: int, target_words: int, factor_words: Sequence[int] = (), *, seed: int
) -> TranslationModel:
    """An untrained model with first values as its config says. Raises ConfigError where it is too large."""
    without_numbers(config, (source_words, target_words, *factor_words))
    model = build_model(config, source_words, target_words, factor_words)
    initialise(model, config.initialisation, seed=seed, spread=config.init_range)
    return model
