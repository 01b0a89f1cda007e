"""Presets are trained as their papers trained them, unless told otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from nmt_core.models.build import PRESETS, preset
from nmt_core.training.config import RunConfig, TrainingConfig, with_recipe

DATA = {"source": "a", "target": "b"}


def _run(**settings: Any) -> RunConfig:
    return RunConfig.from_mapping(with_recipe({"folder": "x", "data": DATA, **settings}), origin="a test")


def test_the_phrase_model_is_trained_on_64_random_pairs() -> None:
    """Cho et al. 2014, section 4.1; a window of one minibatch is not sorted by length across others."""
    run = _run(model={"preset": "rnnencdec-cho2014"})
    assert (run.training.batch_sentences, run.training.window, run.training.optimizer) == (64, 1, "adadelta")
    assert run.model == preset("rnnencdec-cho2014")


def test_what_the_file_says_stays() -> None:
    run = _run(model={"preset": "rnnencdec-cho2014", "hidden": 8}, training={"batch_sentences": 5, "seed": 7})
    assert (run.training.batch_sentences, run.training.window, run.training.seed) == (5, 1, 7)
    assert run.model.hidden == 8


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"rnnencdec-cho2014"}))
def test_the_defaults_are_the_recipe_of_the_others(name: str) -> None:
    assert _run(model={"preset": name}).training == TrainingConfig()
