"""The continuous-space language model: what it reads, what it is made of, and each context asked once."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.inference.scoring import contexts
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import build_model, new_model
from nmt_core.models.cslm import CSLM, CSLMConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.models.presets import PRESETS
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = [f"w{number}" for number in range(6)]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *WORDS])
CONFIG = CSLMConfig(order=4, embedding=5, hidden=(7, 6))


def drawn(config: CSLMConfig = CONFIG) -> CSLM:
    model = build_model(config, 2, len(VOCABULARY)).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(4)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    assert isinstance(model, CSLM)
    return model


def loaded(model: CSLM) -> LoadedModel:
    return LoadedModel(model, Vocabulary(SPECIAL_WORDS), VOCABULARY, FolderConfig(model=model.config), "0" * 12, "lm")


def texts(count: int) -> list[SentencePair]:
    generator = random.Random(3)
    return [SentencePair("", " ".join(generator.choices(WORDS, k=generator.randint(0, 9)))) for _ in range(count)]


@pytest.mark.parametrize("buffer", [1, 3, 4096])
def test_scores_do_not_depend_on_the_buffer_or_the_order(monkeypatch: pytest.MonkeyPatch, buffer: int) -> None:
    model, pairs = drawn(), texts(60)
    monkeypatch.setattr(contexts, "BUFFER", buffer)
    found = ModelPairScorer([loaded(model)]).score(pairs, per_word=True)
    for pair, score in zip(pairs, found, strict=True):
        expected = model(pad_pairs([([], VOCABULARY.encode(pair.target))]))[0]
        assert score.word_log_probs == pytest.approx(expected.tolist(), abs=1e-10)
    backwards = ModelPairScorer([loaded(model)]).score(pairs[::-1])
    assert [one.log_prob for one in backwards[::-1]] == pytest.approx([one.log_prob for one in found], abs=1e-10)


def test_every_context_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs = drawn(), texts(60)
    asked: list[tuple[int, ...]] = []
    real = model.after

    def counted(context: Tensor) -> Tensor:
        asked.extend(map(tuple, context.tolist()))
        return real(context)

    monkeypatch.setattr(model, "after", counted)
    ModelPairScorer([loaded(model)]).score(pairs)
    ids = [[-1, -1, -1, *VOCABULARY.encode(pair.target)] for pair in pairs]
    contexts = {tuple(words[place : place + 3]) for words in ids for place in range(len(words) - 2)}
    assert sorted(asked) == sorted(contexts)
    assert len(contexts) < sum(len(words) - 2 for words in ids)


@pytest.mark.parametrize("softmax", ["none", 4])
def test_other_softmaxes_agree_with_the_walk_over_the_tree(monkeypatch: pytest.MonkeyPatch, softmax: object) -> None:
    scorer = ModelPairScorer([loaded(drawn())], softmax=softmax)
    merged = [score.log_prob for score in scorer.score(texts(20))]
    monkeypatch.setattr("nmt_core.inference.scoring.walk.ContextModel", type("Other", (TranslationModel,), {}))
    assert [score.log_prob for score in scorer.score(texts(20))] == pytest.approx(merged, abs=1e-10)


def test_the_papers_sizes_and_first_values() -> None:
    config = PRESETS["cslm-cho2014"]
    model = new_model(config, 2, 150, seed=1)
    sizes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert sizes["hidden.0.weight"] == (1536, 3072)
    assert sizes["hidden.1.weight"] == (1024, 1536)
    assert sizes["output.weight"] == (150, 1024)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert not parameter.any(), name
        else:
            assert 0.0099 < parameter.abs().max() <= 0.01, name
            assert parameter.mean().abs() < 1e-3
