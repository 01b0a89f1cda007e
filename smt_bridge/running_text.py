"""Running text to the words of Moses' side of a hybrid, and its translations to running text.

A recipe may name the ``preparation.json`` of Moses' text. Without one the neural model's is used without
the steps that cut words (compounds, subwords), or Moses' tokeniser for the languages of a model that carries none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nmt_core.preparation.bundled import BundledPreprocessor, PreparedText
from nmt_core.text.processing import RawText, TextProcessor
from smt_bridge.recipe import Recipe

RunningText = RawText
"""The name by which the live hybrid, which may not reach into ``nmt_core.text``, has it."""


def read_preparation(recipe: Recipe) -> BundledPreprocessor | None:
    """The preparation that a recipe names, if any. Raises InputError for a file that is none."""
    return BundledPreprocessor.read(recipe.preparation) if recipe.preparation else None


def open_running_text(
    preparation: BundledPreprocessor | None, models: Sequence[Any], own: Callable[[], RunningText] | None
) -> RunningText:
    """By the recipe's ``preparation``, or the one that its loaded neural ``models`` carry.

    There are none of a model that another program runs: it has its ``own``. Raises ConfigError for models that were
    prepared differently, and as ``own``.
    """
    if preparation is None and not models:
        assert own is not None
        return own()
    from nmt_core.model_directory.ensembles import shared_preparation  # with PyTorch, which Remote does without

    found = preparation or shared_preparation(models)
    if found is None or (preparation is None and found.record.settings.tokenization is None):
        return TextProcessor(models[0].text)
    return PreparedText(found, surface=True)
