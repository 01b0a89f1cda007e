"""Presets are trained as their papers trained them, unless told otherwise."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from nmt_core.commands.main import main
from nmt_core.models.build import AnyConfig
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.deep_lstm import LuongConfig
from nmt_core.models.presets import PRESETS, preset
from nmt_core.training.config import RunConfig, TrainingConfig
from nmt_core.training.optimizer import rate_factor
from nmt_core.training.run import RECIPES, with_language_model, with_recipe

DATA = {"source": "a", "target": "b"}


def _run(**settings: Any) -> RunConfig:
    return RunConfig.from_mapping(with_recipe({"folder": "x", "data": DATA, **settings}), origin="a test")


def test_the_phrase_model_is_trained_on_64_random_pairs() -> None:
    """Cho et al. 2014, section 4.1; a window of one minibatch is not sorted by length across others."""
    run = _run(model={"preset": "rnnencdec-cho2014"})
    assert (run.training.batch_sentences, run.training.window, run.training.optimizer) == (64, 1, "adadelta")
    assert run.model == preset("rnnencdec-cho2014")


def test_the_continuous_space_model_is_trained_on_512_ngrams() -> None:
    """Cho et al. 2014, section 4.1.2; what it leaves open is as for the phrase model."""
    run = _run(model={"preset": "cslm-cho2014"}, data={"text": "a"})
    training = run.training
    assert (training.batch_tokens, training.optimizer, training.gradient) == (512, "adadelta", "sum")
    assert (training.clip, training.patience) == (1.0, 10)
    assert isinstance(run.model, CSLMConfig)
    assert (run.model.order, run.model.hidden, run.model.dropout) == (7, (1536, 1024), 0.0)


def test_what_the_file_says_stays() -> None:
    run = _run(model={"preset": "rnnencdec-cho2014", "hidden": 8}, training={"batch_sentences": 5, "seed": 7})
    assert (run.training.batch_sentences, run.training.window, run.training.seed) == (5, 1, 7)
    assert run.model.hidden == 8


def test_a_file_with_text_is_of_a_language_model_unless_it_says_more() -> None:
    data = {"text": "a"}
    nll = {"data": data, "training": {"select_by": "nll"}}
    assert with_language_model({"data": data}) == {**nll, "model": {"type": "rnnlm"}}
    assert with_language_model({"data": data, "model": {"preset": "p"}}) == {**nll, "model": {"preset": "p"}}
    said = {"data": data, "model": {"type": "cslm"}, "training": {"select_by": "bleu"}}
    for settings in (said, {"data": {"text": None}}, {"data": DATA}, {"data": None}, {}):
        assert with_language_model(settings) == settings
    assert [with_recipe({"model": None}), with_recipe({})] == [{"model": None}, {}]
    assert "data" not in with_recipe({"model": {"preset": "luong2015-copy4"}})


@pytest.mark.parametrize(
    ("name", "embedding", "rank"),
    [("rnnsearch", 620, None), ("rnnencdec", 620, None), ("rnnencdec-cho2014", 100, 100)],
)
def test_sizes_of_the_models_of_bahdanau_and_cho(name: str, embedding: int, rank: int | None) -> None:
    """Bahdanau et al. 2015, appendix A.2.3; Cho et al. 2014, section 4.1.1."""
    found = preset(name).to_mapping()
    assert (found["hidden"], found["embedding"], found["output_rank"], found["maxout"]) == (1000, embedding, rank, 500)
    assert (found.get("alignment", 1000), found["dropout"], found["initialisation"]) == (1000, 0.0, "paper")


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("luong2015-base", [1.0] * 8 + [0.5, 0.25, 0.125, 0.0625]),
        ("luong2015-local-p-general-feed", [1.0] * 8 + [0.5, 0.25, 0.125, 0.0625]),
        ("luong2016-hybrid", [1.0] * 4 + [0.5, 0.125]),
        ("luong2015-copy4", [0.7] * 5 + [0.35, 0.0875, 0.021875]),
        ("luong2015-copy6", [0.7] * 5 + [0.35, 0.0875, 0.021875]),
        ("luong2016-multitask", [0.7] * 8 + [0.35, 0.175, 0.0875, 0.04375]),
    ],
)
def test_models_of_luong_are_trained_with_sgd_and_rates_that_halve(name: str, rates: list[float]) -> None:
    """Luong et al. 2015b, section 4.1 (with dropout), 2015a, 4.2, Luong and Manning 2016 (thesis, 5.3.2), 2016, 4.2."""
    training = _run(model={"preset": name}).training
    assert (training.optimizer, training.gradient, training.clip) == ("sgd", "sentence", 5.0)
    assert (training.batch_sentences, training.max_epochs) == (128, len(rates))
    found = [training.learning_rate * rate_factor(training, update=1, epochs=epoch) for epoch in range(len(rates))]
    assert found == pytest.approx(rates)


@pytest.mark.parametrize(
    ("name", "depth", "size", "dropout", "init_range", "longest"),
    [
        ("luong2015-base", 4, 1000, 0.2, 0.1, 50),
        ("luong2015-local-p-general-feed", 4, 1000, 0.2, 0.1, 50),
        ("luong2015-copy4", 4, 1000, 0.0, 0.08, 100),
        ("luong2015-copy6", 6, 1000, 0.0, 0.06, 100),
        ("luong2016-hybrid", 4, 1024, 0.2, 0.1, 50),
        ("luong2016-multitask", 4, 1000, 0.2, 0.06, 50),
    ],
)
def test_sizes_and_first_values_of_the_models_of_luong(
    name: str, depth: int, size: int, dropout: float, init_range: float, longest: int
) -> None:
    """The thesis, 3.2.2, 4.2.1, 5.3.2 and 6.1.2."""
    run = _run(model={"preset": name})
    model = run.model
    assert isinstance(model, LuongConfig)
    assert (model.depth, model.hidden, model.embedding, model.reverse) == (depth, size, size, True)
    assert (model.dropout, model.initialisation, model.init_range) == (dropout, "uniform", init_range)
    assert run.data.max_length == longest
    assert _run(model={"preset": name}, data={**DATA, "max_length": 30}).data.max_length == 30


@pytest.mark.parametrize("name", sorted(set(PRESETS) - set(RECIPES)))
def test_the_defaults_are_the_recipe_of_the_others(name: str) -> None:
    assert _run(model={"preset": name}).training == TrainingConfig()


def test_every_kind_of_model_has_a_preset() -> None:
    """Or ``nmt-core init`` could not make one; ``nmt-core fuse`` makes those of deep fusion."""
    assert {type(config) for config in PRESETS.values()} == set(get_args(AnyConfig)) - {DeepFusionConfig}


def test_every_preset_is_named_by_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["init", "--help"])
    shown = set(re.findall(r"[\w-]+", capsys.readouterr().out))
    assert set(PRESETS) <= shown
