"""The model that training begins with: a new one, or that of ``training.start_from``; and the one of ``mask_of``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.config import dotted
from nmt_core.model_directory.directory import FACTOR_VOCABULARIES, LEXICON, SOURCE_VOCABULARY, TARGET_VOCABULARY
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.model_directory.settings import read_settings
from nmt_core.models.build import AnyConfig, build_model, new_model, source_factors
from nmt_core.models.interface import TranslationModel
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.training.config import RunConfig

_NOT_PARAMETERS = {  # settings that leave what a trained model computes as it is
    "dropout",
    "embedding_dropout",
    "layer_dropout",
    "variational_dropout",
    "word_dropout",
    "initialisation",
    "init_range",
    "trained",
    "character_weight",
    "characters",
}


def first_model(run: RunConfig, vocabularies: Sequence[Vocabulary], start: LoadedModel | None) -> TranslationModel:
    """A model with first values, or with those of ``start_from``. Raises ConfigError where that is another model.

    ``vocabularies`` are those of source, target and source factors.
    """
    source_words, target_words, *factor_words = map(len, vocabularies)
    if start is None:
        return new_model(run.model, source_words, target_words, factor_words, seed=run.training.seed)
    different = _difference(run, vocabularies, start)
    if different is not None:
        raise ConfigError(
            f"training.start_from: {start.folder} has another {different}; "
            "leave model, vocabularies and target_order out of the file, and those of the folder are taken"
        )
    if run.model == start.config.model:
        return start.model
    model = build_model(run.model, source_words, target_words, factor_words)
    model.load_state_dict(start.model.state_dict())
    return model


def masked_model(run: RunConfig, vocabularies: Sequence[Vocabulary]) -> LoadedModel:
    """The model of ``training.mask_of``. Raises ConfigError where it is another than that of the run."""
    assert run.training.mask_of is not None
    masked = load_model(run.training.mask_of)
    different = _difference(run, vocabularies, masked)
    if different is not None:
        raise ConfigError(
            f"training.mask_of: {masked.folder} has another {different}; "
            "give its settings of the model, and its vocabularies as data.source_vocabulary and data.target_vocabulary"
        )
    return masked


def _difference(run: RunConfig, vocabularies: Sequence[Vocabulary], other: LoadedModel) -> str | None:
    """What a model and that of the run do not have in common."""
    setting = _different_setting(run.model, other.config.model)
    if setting is not None:
        return setting
    names = ("source vocabulary", "target vocabulary", *(["vocabulary of a source factor"] * len(other.factors)))
    for what, mine, theirs in zip(names, vocabularies, other.vocabularies, strict=True):
        if mine.words != theirs.words:
            return what
    if run.copying != other.config.copying:
        return "copying"
    return "target_order" if run.target_order != other.target_order else None


def _different_setting(mine: AnyConfig, theirs: AnyConfig) -> str | None:
    """The first setting of the parameters, or of what is computed with them, in which two models differ."""
    if mine.type != theirs.type:
        return f"model.type ({theirs.type}, not {mine.type})"
    others = dotted(theirs.to_mapping(), "model.")
    for key, value in dotted(mine.to_mapping(), "model.").items():
        if key.rpartition(".")[2] not in _NOT_PARAMETERS and value != others[key]:
            return f"{key} ({others[key]}, not {value})"
    return None


def with_start_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what they leave to the folder of ``training.start_from``: model, text, order and vocabularies.

    Of a model of the same type the keys that are not given are the folder's. Raises ModelError when there is no model
    in it.
    """
    training = settings.get("training")
    folder = training.get("start_from") if isinstance(training, Mapping) else None
    if not isinstance(folder, str):
        return dict(settings)
    start = read_settings(folder)
    found, data = start.to_mapping(), settings.get("data")
    vocabularies: dict[str, Any] = {
        "source_vocabulary": os.path.join(folder, SOURCE_VOCABULARY),
        "target_vocabulary": os.path.join(folder, TARGET_VOCABULARY),
    }
    if found["lexicon"] is not None:
        vocabularies["lexicon"] = os.path.join(folder, LEXICON)
    if factors := source_factors(start.model):
        names = FACTOR_VOCABULARIES[:factors]
        vocabularies["source_factor_vocabularies"] = [os.path.join(folder, name) for name in names]
    kept = {key: found[key] for key in ("model", "text", "target_order", "copying")}
    model = settings.get("model")
    if isinstance(model, Mapping) and ("preset" in model or model.get("type", start.model.type) != start.model.type):
        del kept["model"]
    filled = _merged(kept, settings)
    return {**filled, "data": {**vocabularies, **data}} if isinstance(data, Mapping) else filled


def _merged(those: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given on top of others, key by key."""
    merged = {**those, **given}
    for key, value in those.items():
        if isinstance(value, Mapping) and isinstance(given.get(key), Mapping):
            merged[key] = _merged(value, given[key])
    return merged
