"""One score is one number: how far search, the pair scorer, and batches of different company agree."""

from __future__ import annotations

import random

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.build import AnyConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from tests.confident_models import confident_model, text_of

CONFIG = RNNsearchConfig(embedding=64, hidden=96, maxout=48, alignment=64)
BFLOAT16 = [
    RNNLMConfig(embedding=64, hidden=96),
    RNNLMConfig(embedding=64, hidden=96, cell="lstm", output_rank=32),
    RNNLMConfig(embedding=64, hidden=96),
    RNNencdecConfig(embedding=64, hidden=96, maxout=48, cell="lstm"),
]


def confident(dtype: torch.dtype, config: AnyConfig = CONFIG) -> LoadedModel:
    return confident_model(config, scale=0.2, dtype=dtype)


def lines() -> list[str]:
    chance = random.Random(2)
    return [text_of(chance, chance.randrange(3, 30)) for _ in range(24)]


@pytest.mark.parametrize(("dtype", "per_word"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-5)])
def test_search_and_pair_scorer(dtype: torch.dtype, per_word: float) -> None:
    loaded = confident(dtype)
    translator = Translator([loaded], config=DecodingConfig(beam=5, nbest=5, max_length_ratio=1.0))
    found = translator.translate(lines())
    ours = [(SentencePair(line, one.text), one) for line, nbest in zip(lines(), found, strict=True) for one in nbest]
    scores = ModelPairScorer([loaded]).score([pair for pair, _ in ours])
    for (_, one), score in zip(ours, scores, strict=True):
        assert one.log_prob == pytest.approx(score.log_prob, abs=per_word * len(one.word_log_probs))
        assert sum(one.word_log_probs) == pytest.approx(one.log_prob, abs=1e-9)
        assert one.score == pytest.approx(one.log_prob / len(one.word_log_probs), abs=1e-9)
    assert all([one.score for one in nbest] == sorted((one.score for one in nbest), reverse=True) for nbest in found)


@pytest.mark.parametrize(("dtype", "per_word"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_the_company_of_a_batch(dtype: torch.dtype, per_word: float) -> None:
    loaded = confident(dtype)
    scorer = ModelPairScorer([loaded])
    sources = lines()
    pairs = [SentencePair(source, target) for source, target in zip(sources, sources[::-1], strict=True)]
    together = scorer.score(pairs)
    for pair, score in zip(pairs, together, strict=True):
        words = pair.target.count(" ") + 2
        assert scorer.score([pair])[0].log_prob == pytest.approx(score.log_prob, abs=per_word * words)


@pytest.mark.parametrize("config", BFLOAT16, ids=lambda config: f"{config.type}-{config.cell}")
def test_every_kind_of_model_takes_bfloat16(config: RNNLMConfig | RNNencdecConfig) -> None:
    exact, coarse = confident(torch.float32, config), confident(torch.bfloat16, config)
    pairs = [SentencePair(source, target) for source, target in zip(lines(), lines()[::-1], strict=True)]
    for one, other in zip(ModelPairScorer([exact]).score(pairs), ModelPairScorer([coarse]).score(pairs), strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, rel=0.02)
    assert Translator([coarse], config=DecodingConfig(beam=2)).translate(lines()[:2])
