"""How raw text becomes what loaded models read, and back: by what they carry, or by Moses' tokeniser alone."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.preparation.bundled import BundledPreprocessor, PreparedText
from nmt_core.text.processing import RawText, TextProcessor


def open_raw_text(models: Sequence[LoadedModel]) -> RawText:
    """For one model or an ensemble. Raises ConfigError where its members read raw text in different ways, or none."""
    if models[0].factors:
        raise ConfigError(
            f"{models[0].folder} reads words with factors (word|factor), which raw text does not have; "
            "give text whose words have them, without --raw"
        )
    preparation = shared_preparation(models)
    if preparation is not None:
        return PreparedText(preparation)
    for other in models[1:]:
        if other.text != models[0].text:
            raise _differ(models[0], other)
    return TextProcessor(models[0].text)


def shared_preparation(models: Sequence[LoadedModel]) -> BundledPreprocessor | None:
    """What all of them carry, None if nothing. Raises ConfigError where that differs."""
    first = models[0]
    for other in models[1:]:
        if not other.prepared_as(first):
            raise _differ(first, other)
    return first.preparation


def _differ(one: LoadedModel, other: LoadedModel) -> ConfigError:
    return ConfigError(
        f"{one.folder} and {other.folder} were trained on text that was prepared in different ways; "
        "an ensemble of them takes prepared text only, of one kind that all of them know"
    )
