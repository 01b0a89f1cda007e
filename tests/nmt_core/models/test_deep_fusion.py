"""Deep fusion (Gülçehre et al. 2015) against its equations, and against the model it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_fusion import DeepFusion, fuse
from nmt_core.models.interface import TranslationModel
from nmt_core.models.rnnlm import RNNLM, RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.text.copying import CopyScheme, with_tokens
from nmt_core.text.processing import TextConfig
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.models.runs import train

Order = Literal["look-generate-update", "conditional"]
PAIRS = [([2, 3, 4], [2, 5, 3]), ([5], [4]), ([3, 3, 2, 4], [5, 1, 2, 2, 3])]
SOURCE_WORDS = Vocabulary([*SPECIAL_WORDS, "a", "b", "c", "d"])
TARGET_WORDS = Vocabulary([*SPECIAL_WORDS, "u", "v", "w", "x", "y"])
LM_WORDS = Vocabulary([*SPECIAL_WORDS, "y", "u", "z", "w"])
LANGUAGE_IDS = [0, 1, 3, 1, 5, 1, 2]  # u v w x y


def randomized(model: TranslationModel, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator))


def models(order: Order) -> tuple[RNNsearch, RNNLM]:
    search = RNNsearchConfig(hidden=5, embedding=4, alignment=3, maxout=4, order=order)
    translation = new_model(search, len(SOURCE_WORDS), len(TARGET_WORDS), seed=1).eval()
    lm = RNNLMConfig(hidden=6, embedding=3, embedding_dropout=0.5)
    language = new_model(lm, 2, len(LM_WORDS), seed=2).eval()
    for seed, model in enumerate((translation, language)):
        randomized(model, seed)
    assert isinstance(translation, RNNsearch)
    assert isinstance(language, RNNLM)
    return translation, language


def fused(order: Order = "look-generate-update") -> DeepFusion:
    """A fused model with a controller that has opinions."""
    model = fuse(*models(order), LANGUAGE_IDS).eval()
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.controller.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


@pytest.mark.parametrize("order", ["look-generate-update", "conditional"])
def test_a_new_fused_model_is_the_translation_model(order: Order) -> None:
    translation, language = models(order)
    batch = pad_pairs(PAIRS)
    model = fuse(translation, language, LANGUAGE_IDS).eval()
    with torch.no_grad():
        plain = translation(batch)
        assert torch.equal(model(batch), plain)
    assert model.controller.state.bias.item() == -1.0
    assert model.fusion.language == language.config.model_copy(update={"embedding_dropout": 0.0})  # it is not trained
    with torch.no_grad():
        for parameter in model.controller.parameters():
            parameter.fill_(0.7)
        assert not torch.allclose(model(batch), plain)
        model.controller.state.bias.fill_(-1e9)  # the gate shut
        assert torch.equal(model(batch), plain)


def test_one_step_is_the_equation() -> None:
    """Written in NumPy from the paper: the readout of the second word."""
    model = fused()
    translation, language = models("look-generate-update")
    batch = pad_pairs(PAIRS[:1])
    with torch.no_grad():
        readout = model.known_targets(batch).readouts_BTL[0, 1].numpy()
        memory = translation.encode(batch.source)
        encoders = (translation.encoder, translation.backward_encoder)
        embedded = translation.source_embedding(batch.source.words_BL)
        sides = [encoder(embedded, batch.source.mask_BL)[0] for encoder in encoders]
        first = translation.step(torch.tensor([-1]), translation.start(memory), memory)
        second = translation.step(torch.tensor([2]), first.state, memory)
        lm_state = language.start(language.encode(batch.source))
        for word in (-1, LANGUAGE_IDS[2]):
            lm_state = language.step(torch.tensor([word]), lm_state, None).state
        s_lm = lm_state.hidden_NU[0].numpy()
        s_tm = second.state.hidden_NU[0].numpy()
        context = second.attention_NS[0].numpy() @ torch.cat(sides, dim=2)[0].numpy()
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    v, w, b = (weights[f"controller.{name}"] for name in ("language.weight", "state.weight", "state.bias"))
    gate = 1 / (1 + np.exp(-(v @ s_lm + w @ s_tm + b)))
    pairs = (
        weights["readout.state.weight"] @ s_tm
        + weights["readout.state.bias"]
        + weights["readout.word.weight"] @ weights["target_embedding.weight"][2]
        + weights["readout.context.weight"] @ context
        + weights["controller.readout.weight"] @ (gate * s_lm)
    )
    assert readout == pytest.approx(pairs.reshape(-1, 2).max(axis=1), abs=1e-5)


def folders(place: Path) -> tuple[str, str]:
    names = []
    for name, model, source, target in zip(
        ("tm", "lm"),
        models("look-generate-update"),
        (SOURCE_WORDS, Vocabulary(SPECIAL_WORDS)),
        (TARGET_WORDS, LM_WORDS),
        strict=True,
    ):
        save_model(str(place / name), model, source, target, FolderConfig(model=model.config))
        names.append(str(place / name))
    return names[0], names[1]


def test_fuse_then_train_changes_the_readout_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], error_line: Callable[..., str]
) -> None:
    translation, language = folders(tmp_path)
    start = str(tmp_path / "start")
    command = ["fuse", "--model", translation, "--lm", language, "--output", start]
    assert main(command) == 0
    said = "fused; the language model knows 5 of 7 target words; training changes 0.0 M parameters"
    assert capfd.readouterr().err == f"{start}: {said}\n"
    assert f"{start}: holds a model already" in error_line(main, command)
    made = load_model(start)
    origin = {"translation": load_model(translation).fingerprint, "language": load_model(language).fingerprint}
    assert made.config.trained_with == {"fused": origin}
    pairs = [SentencePair("a b c", "u w y"), SentencePair("d", "x"), SentencePair("", "v")]
    plain = [score.log_prob for score in ModelPairScorer([load_model(translation)]).score(pairs)]
    assert [s.log_prob for s in ModelPairScorer([load_model(start)]).score(pairs)] == pytest.approx(plain, abs=1e-6)

    assert train(tmp_path, "trained", start_from=start) == 0
    before, after = (dict(load_model(str(path)).model.named_parameters()) for path in (start, tmp_path / "trained"))
    changed = {name.split(".")[0] for name, value in before.items() if not torch.equal(value, after[name])}
    assert changed == {"readout", "output", "controller"}


def test_a_fused_model_reads_and_writes_text_as_the_translation_model(tmp_path: Path) -> None:
    words = with_tokens(TARGET_WORDS, CopyScheme.POSUNK.target_tokens)
    text, order = TextConfig(source_language="de"), TargetOrder.RIGHT_TO_LEFT
    search, lm = RNNsearchConfig(hidden=5, embedding=4, alignment=3, maxout=4), RNNLMConfig(hidden=6, embedding=3)
    for name, config, copying in (("tm", search, CopyScheme.POSUNK), ("lm", lm, None)):
        settings = FolderConfig(model=config, text=text, target_order=order, copying=copying)
        model = new_model(config, len(SOURCE_WORDS), len(words), seed=1)
        save_model(str(tmp_path / name), model, SOURCE_WORDS, words, settings)
    names = [f"--{option}={tmp_path / name}" for option, name in (("model", "tm"), ("lm", "lm"), ("output", "out"))]
    assert main(["fuse", *names]) == 0
    made = load_model(str(tmp_path / "out")).config
    assert (made.text, made.target_order, made.copying) == (text, order, CopyScheme.POSUNK)


@pytest.mark.parametrize("first", ["prune", "fuse"])
def test_a_controller_that_begins_at_zero_is_trained_where_zeros_are_kept(tmp_path: Path, first: str) -> None:
    translation, language = folders(tmp_path)
    start, between = str(tmp_path / "start"), str(tmp_path / "between")
    prune = ["prune", "--fraction", "0.4", "--model"]
    fuse_all = ["fuse", "--trained", "all", "--lm", language, "--model"]
    steps = [prune, fuse_all] if first == "prune" else [fuse_all, prune]
    assert main([*steps[0], translation, "--output", between]) == 0
    assert main([*steps[1], between, "--output", start]) == 0
    how = {"start_from": start, "keep_zeros": True, "optimizer": "adam", "learning_rate": 0.01}
    assert train(tmp_path, "trained", **how, max_updates=6) == 0
    before, after = (dict(load_model(str(path)).model.named_parameters()) for path in (start, tmp_path / "trained"))
    matrices = {name for name, value in before.items() if value.dim() == 2}
    controller = {name for name in matrices if name.startswith("controller.")}
    assert len(controller) == 3
    assert all(bool(after[name].any()) for name in controller)
    assert any(bool((before[name] == 0).any()) for name in matrices - controller)
    assert all(not after[name][before[name] == 0].any() for name in matrices - controller)


@pytest.mark.parametrize(
    ("translation", "language", "problem"),
    [
        ("lm", "lm", "lm: deep fusion needs a model of type rnnsearch"),
        ("tm", "tm", "tm: is no recurrent language model (type rnnlm); 'nmt-core train' makes one"),
        ("no", "lm", "no: there is no such model directory"),
        ("fused", "lm", "fused: deep fusion needs a model of type rnnsearch"),
        ("turned", "lm", "so that they have no next word in common; "),
    ],
)
def test_what_cannot_be_fused_is_one_clear_line(
    tmp_path: Path, error_line: Callable[..., str], translation: str, language: str, problem: str
) -> None:
    folders(tmp_path)
    if translation == "fused":
        names = (str(tmp_path / name) for name in ("tm", "lm", "fused"))
        assert (
            main(["fuse", *(part for one in zip(("--model", "--lm", "--output"), names, strict=True) for part in one)])
            == 0
        )
    if translation == "turned":
        model = models("look-generate-update")[0]
        config = FolderConfig(model=model.config, target_order=TargetOrder.RIGHT_TO_LEFT)
        save_model(str(tmp_path / "turned"), model, SOURCE_WORDS, TARGET_WORDS, config)
    arguments = ["--model", str(tmp_path / translation), "--lm", str(tmp_path / language)]
    assert problem in error_line(main, ["fuse", *arguments, "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_starting_from_a_model_of_other_settings_is_refused(tmp_path: Path, error_line: Callable[..., str]) -> None:
    translation, _ = folders(tmp_path)
    model = {**load_model(translation).config.model.to_mapping(), "hidden": 7, "dropout": 0.2}
    line = error_line(train, tmp_path, "x", model=model, start_from=translation)
    assert "has another model.hidden (5, not 7); leave" in line


def test_a_model_goes_on_with_other_dropout(tmp_path: Path) -> None:
    translation, _ = folders(tmp_path)
    before = load_model(translation)
    other = {"dropout": 0.3, "embedding_dropout": 0.1, "init_range": 0.5}
    how = {"start_from": translation, "optimizer": "sgd", "learning_rate": 1e-12, "max_updates": 1}
    assert train(tmp_path, "x", model={**before.config.model.to_mapping(), **other}, **how) == 0
    after = load_model(str(tmp_path / "x"))
    assert after.config.model.dropout == 0.3
    found = after.model.state_dict()
    for name, value in before.model.state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)


def test_without_the_models_it_is_made_of_it_is_refused(tmp_path: Path, error_line: Callable[..., str]) -> None:
    assert "training.start_from is missing" in error_line(train, tmp_path, "x", model={"type": "deep-fusion"})
    assert not (tmp_path / "x").exists()
