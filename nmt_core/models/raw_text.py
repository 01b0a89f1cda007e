"""How raw text becomes what loaded models read, and back: by what they carry, or by Moses' tokeniser alone."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.errors import ConfigError
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.preparation.carried import PreparedText
from nmt_core.text.processing import RawText, TextProcessor


def open_raw_text(models: Sequence[LoadedModel]) -> RawText:
    """For one model or an ensemble. Raises ConfigError where its members read raw text in different ways."""
    first = models[0]
    for other in models[1:]:
        if not other.prepared_as(first):
            raise ConfigError(
                f"{first.folder} and {other.folder} were trained on text that was prepared in different ways; "
                "an ensemble of them takes prepared text only, of one kind that all of them know"
            )
    return TextProcessor(first.text) if first.preparation is None else PreparedText(first.preparation)
