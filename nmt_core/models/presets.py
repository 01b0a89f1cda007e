"""The papers' settings by name. What loads a model does not need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.models.build import AnyConfig
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig

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
