"""Settings of models: the papers' by name, the limits of sizes, and what dropout is of."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import Batch, pad, pad_sources
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.presets import PRESETS, preset
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.sentence import Sentence

LUONG: dict[str, Any] = {"type": "deep-lstm"}
FED: dict[str, Any] = {**LUONG, "feeding": True}
CHO = {"embedding": 100, "output_rank": 100, "summary": "tanh", "reset": "context", "order": "conditional"}
PAPERS: dict[str, dict[str, Any]] = {
    "rnnencdec-cho2014": {"type": "rnnencdec", **CHO},
    "rnnencdec": {"type": "rnnencdec"},
    "rnnsearch": {"type": "rnnsearch"},
    "rnnlm": {"type": "rnnlm"},
    "luong2015-base": LUONG,
    "luong2015-global-dot-feed": {**FED, "attention": "dot"},
    "luong2015-global-general-feed": {**FED, "attention": "general"},
    "luong2015-global-concat-feed": {**FED, "attention": "concat"},
    "luong2015-global-location-feed": {**FED, "attention": "location"},
    "luong2015-local-m-general-feed": {**FED, "attention": "general", "window": "local-m"},
    "luong2015-local-p-dot-feed": {**FED, "attention": "dot", "window": "local-p"},
    "luong2015-local-p-general-feed": {**FED, "attention": "general", "window": "local-p"},
    "luong2015-copy4": {**LUONG, "dropout": 0.0, "init_range": 0.08},
    "luong2015-copy6": {**LUONG, "depth": 6, "dropout": 0.0, "init_range": 0.06},
    "luong2016-hybrid": {"type": "hybrid", "character_depth": 2},
    "luong2016-multitask": {**LUONG, "init_range": 0.06},
    "nematus": {"type": "nematus"},
    "cslm-cho2014": {"type": "cslm", "initialisation": "uniform"},
}
SIZES: dict[str, dict[str, Any]] = {  # beside the table of docs/training.md, where some have the size of another
    "rnnlm": {"embedding": 620, "hidden": 1000, "dropout": 0.0, "initialisation": "paper"},
    "luong2016-hybrid": {"depth": 4, "hidden": 1024, "embedding": 1024, "path": "separate", "attention": "general",
                         "window": "global", "feeding": True, "dropout": 0.2, "init_range": 0.1, "characters": 200,
                         "character_weight": 1.0, "longest_spelling": 30},
    "nematus": {"embedding": 512, "hidden": 1000, "encoder_transitions": 1, "decoder_transitions": 2},
    "cslm-cho2014": {"order": 7, "embedding": 512, "hidden": [1536, 1024], "init_range": 0.01},
}  # fmt: skip


def test_presets_are_the_papers() -> None:
    assert list(PRESETS) == list(PAPERS)
    for name, config in PRESETS.items():
        other = type(config)().to_mapping()
        assert PAPERS[name] == {
            key: value for key, value in config.to_mapping().items() if key == "type" or value != other[key]
        }, name
    for name, values in SIZES.items():
        assert preset(name).to_mapping() | values == preset(name).to_mapping(), name
    with pytest.raises(ConfigError, match=r"^there is no preset 'rnn'; presets: rnnencdec-cho2014, rnnencdec, rnns"):
        preset("rnn")


@pytest.mark.parametrize(
    ("kind", "key", "least", "most"),
    [
        *((RNNsearchConfig, key, 1, None) for key in ("embedding", "hidden", "maxout", "alignment", "output_rank")),
        *((RNNsearchConfig, key, 0.0, 0.999) for key in ("dropout", "embedding_dropout")),
        *((DeepLSTMConfig, key, 1, None) for key in ("embedding", "hidden", "radius", "places")),
        *((NematusConfig, key, 1, None) for key in ("embedding", "hidden")),
        (DeepLSTMConfig, "depth", 1, 100),
        (DeepLSTMConfig, "dropout", 0.0, 0.999),
        (NematusConfig, "encoder_transitions", 1, 100),
        (NematusConfig, "decoder_transitions", 2, 100),
        (CSLMConfig, "order", 2, 64),
        (CSLMConfig, "embedding", 1, None),
        (HybridConfig, "characters", 1, 100_000),
        (HybridConfig, "longest_spelling", 1, 1000),
        (HybridConfig, "character_depth", 1, 100),
        (HybridConfig, "character_weight", 0.0, None),
    ],
)
def test_sizes_have_limits(kind: type[Any], key: str, least: float, most: float | None) -> None:
    step = 0.001 if isinstance(least, float) else 1
    for value in (least, least if most is None else most):
        assert getattr(kind.from_mapping({key: value}, origin="x"), key) == value
    for value in (least - step, *([] if most is None else [most + step])):
        with pytest.raises(ConfigError, match=f"^x: '{key}'"):
            kind.from_mapping({key: value}, origin="x")


SMALL: dict[str, Any] = {"embedding": 4, "hidden": 5, "dropout": 0.5}
RECURRENT: dict[str, Any] = {**SMALL, "maxout": 3, "embedding_dropout": 0.5}


@pytest.mark.parametrize(
    ("config", "widths"),
    [
        (RNNsearchConfig(**RECURRENT, alignment=6, source_factors=(2, 1)), [7, 10, 4, 3]),  # of words, annotations,
        (RNNencdecConfig(**RECURRENT), [4, 5, 4, 3]),  # or the summary, words written, and the readout
        (RNNLMConfig(embedding=4, hidden=5, dropout=0.5, embedding_dropout=0.5), [4, 5]),
        (NematusConfig(**SMALL, embedding_dropout=0.5), [4, 10, 4, 4]),
        (CSLMConfig(order=3, embedding=4, hidden=(6, 5), dropout=0.5), [8, 6, 5]),
        (DeepLSTMConfig(**SMALL, depth=1, attention="dot", feeding=True), [4, 4, 5, 5, 5]),  # what is fed, at each step
    ],
)
def test_dropout_is_of(config: AnyConfig, widths: list[int]) -> None:
    model, seen = new_model(config, 7, 7, [5] * len(getattr(config, "source_factors", ())), seed=1), list[int]()

    def hook(_: nn.Module, __: Any, given: Tensor) -> None:
        seen.append(given.shape[-1])

    for module in model.modules():
        if isinstance(module, nn.Dropout) and module.p:
            assert module.p == 0.5
            module.register_forward_hook(hook)
    source = pad_sources([Sentence([2, 3], None, [[2, 3], [3, 4]])])
    model.train().known_targets(Batch(source, pad([[4, 5]])))
    assert seen == widths
