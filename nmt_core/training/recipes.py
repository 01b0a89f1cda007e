"""How the presets' papers trained them: settings that a run with ``model.preset`` begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmt_core.models.build import with_preset

_LUONG = {
    "optimizer": "sgd",
    "gradient": "sentence",
    "clip": 5.0,
    "batch_sentences": 128,
    "window": 100,
    "schedule": "halving",
}
_RATE_1 = {"learning_rate": 1.0, "max_epochs": 12, "decay_after": 8.0}
_RATE_07 = {"learning_rate": 0.7, "max_epochs": 8, "decay_after": 5.0, "decay_every": 0.5}
_HALF_EPOCHS = {"learning_rate": 1.0, "max_epochs": 6, "decay_after": 4.0, "decay_every": 0.5}
_LUONG_MODELS = (
    "base",
    *(f"global-{score}-feed" for score in ("dot", "general", "concat", "location")),
    *(f"local-{window}-feed" for window in ("m-general", "p-dot", "p-general")),
)
RECIPES: Mapping[str, Mapping[str, Any]] = {
    # Cho et al. 2014, section 4.1: 64 random pairs an update (no windows sorted by length), Adadelta
    "rnnencdec-cho2014": {"batch_sentences": 64, "window": 1},
    # Luong et al. 2015b, section 4.1: 12 epochs with dropout, the rate halved after every one from the 8th on
    **{f"luong2015-{name}": {**_LUONG, **_RATE_1} for name in _LUONG_MODELS},
    # Luong et al. 2015a, section 4.2
    **{f"luong2015-{name}": {**_LUONG, **_RATE_07} for name in ("copy4", "copy6")},
    # Luong and Manning 2016 (thesis, 5.3.2)
    "luong2016-hybrid": {**_LUONG, **_HALF_EPOCHS},
    # Luong et al. 2016, section 4.2
    "luong2016-multitask": {**_LUONG, **_RATE_1, "learning_rate": 0.7},
    # Cho et al. 2014, section 4.1.2: 512 n-grams an update
    "cslm-cho2014": {"batch_tokens": 512},
}

_LONGEST = {"luong2015-copy4": 100, "luong2015-copy6": 100}
"""Longer sentences are left out, where a paper says which (Luong et al. 2015a, section 4.2)."""


def with_recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which ``model.preset`` is replaced by the preset's model, trained as its paper trained it.

    What the settings say themselves stays as they say.
    """
    model, training = settings.get("model"), settings.get("training", {})
    if not isinstance(model, Mapping):
        return dict(settings)
    name, data = str(model.get("preset")), settings.get("data")
    filled: dict[str, Any] = {}
    if name in RECIPES and isinstance(training, Mapping):
        filled["training"] = {**RECIPES[name], **training}
    if name in _LONGEST and isinstance(data, Mapping):
        filled["data"] = {"max_length": _LONGEST[name], **data}
    return {**settings, "model": with_preset(model), **filled}
