"""Which config makes which model: the one table that a new model is added to; and the papers' presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import LANGUAGE_MODELS
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
        "residual",
        "reverse",
        "source_characters",
        "target_characters",
        "window",
    }
)


PRESETS: dict[str, AnyConfig] = {
    # Cho et al. 2014: the phrase model, 15,000 words
    "rnnencdec-cho2014": RNNencdecConfig(
        embedding=100, output_rank=100, summary="tanh", reset="context", order="conditional"
    ),
    # Bahdanau et al. 2015: baseline and RNNsearch, 30,000 words
    "rnnencdec": RNNencdecConfig(),
    "rnnsearch": RNNsearchConfig(),
    # a language model of the target of the same sizes
    "rnnlm": RNNLMConfig(),
    # Luong et al. 2015b (EMNLP): without attention, and the models of its Tables 1 and 4
    "luong2015-base": DeepLSTMConfig(),
    "luong2015-global-dot-feed": DeepLSTMConfig(attention="dot", feeding=True),
    "luong2015-global-general-feed": DeepLSTMConfig(attention="general", feeding=True),
    "luong2015-global-concat-feed": DeepLSTMConfig(attention="concat", feeding=True),
    "luong2015-global-location-feed": DeepLSTMConfig(attention="location", feeding=True),
    "luong2015-local-m-general-feed": DeepLSTMConfig(attention="general", window="local-m", feeding=True),
    "luong2015-local-p-dot-feed": DeepLSTMConfig(attention="dot", window="local-p", feeding=True),
    "luong2015-local-p-general-feed": DeepLSTMConfig(attention="general", window="local-p", feeding=True),
    # Luong et al. 2015a (ACL), the models of annotated text, of 4 and of 6 layers
    "luong2015-copy4": DeepLSTMConfig(dropout=0.0, init_range=0.08),
    "luong2015-copy6": DeepLSTMConfig(depth=6, dropout=0.0, init_range=0.06),
    # Luong and Manning 2016, 50,000 words, 200 characters: the best of Table 5.2 of the thesis
    "luong2016-hybrid": HybridConfig(character_depth=2),
    # Luong et al. 2016, section 4.2
    "luong2016-multitask": DeepLSTMConfig(init_range=0.06),
    # the sizes of Nematus unless the settings say otherwise
    "nematus": NematusConfig(),
    # Cho et al. 2014, section 4.1.2: 7-grams, 15,000 words
    "cslm-cho2014": CSLMConfig(initialisation="uniform"),
}


def preset(name: str) -> AnyConfig:
    """The settings of a paper by name. Raises ConfigError for an unknown name."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f"there is no preset {name!r}; presets: {', '.join(PRESETS)}") from None


def with_preset(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a model in which ``preset: NAME`` is replaced by the preset's, the other keys on top."""
    rest = dict(settings)
    name = rest.pop("preset", None)
    return rest if name is None else {**preset(str(name)).to_mapping(), **rest}


def is_language_model(config: AnyConfig) -> bool:
    """Whether it is p(target), whatever the source."""
    return config.type in LANGUAGE_MODELS


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


def new_model(
    config: AnyConfig, source_words: int, target_words: int, factor_words: Sequence[int] = (), *, seed: int
) -> TranslationModel:
    """An untrained model with first values as its config says."""
    model = build_model(config, source_words, target_words, factor_words)
    initialise(model, config.initialisation, seed=seed, spread=config.init_range)
    return model
