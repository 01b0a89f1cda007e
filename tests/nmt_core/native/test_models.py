"""Models with compiled kernels: as near to the exact numbers as without, and told apart from models without."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.models.build import AnyConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.native import kernels
from nmt_core.native.library import Library
from tests.confident_models import confident_model, text_of

SIZES = {"embedding": 61, "hidden": 93, "maxout": 47, "alignment": 71}
CONFIGS: list[AnyConfig] = [
    RNNsearchConfig(**SIZES),
    RNNsearchConfig(order="conditional", **SIZES),
    DeepLSTMConfig(depth=2, embedding=61, hidden=93, attention="general", feeding=True, dropout=0.0),
]
CHANCE = random.Random(1)
LINES = [text_of(CHANCE, CHANCE.randrange(1, 12)) for _ in range(30)]
PAIRS = [SentencePair(line, text_of(CHANCE, CHANCE.randrange(1, 9))) for line in LINES for _ in range(8)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def scores(config: AnyConfig, dtype: torch.dtype) -> list[float]:
    model = confident_model(config, scale=0.2, dtype=dtype)
    return [score.log_prob for score in ModelPairScorer([model]).score(PAIRS)]


def mean_error(config: AnyConfig) -> float:
    both = zip(scores(config, torch.bfloat16), scores(config, torch.float32), strict=True)
    return sum(abs(coarse - exact) for coarse, exact in both) / len(PAIRS)


@pytest.mark.parametrize("config", CONFIGS, ids=["paper", "conditional", "deep-lstm"])
def test_scores_are_about_as_exact_as_without_them(
    config: AnyConfig, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = mean_error(config)
    monkeypatch.setattr(kernels, "load", lambda: None)
    assert 0.0 < error <= mean_error(config) * 1.25  # the products, which are the same, make most of it


@pytest.mark.parametrize("config", CONFIGS, ids=["paper", "conditional", "deep-lstm"])
@pytest.mark.usefixtures("library")
def test_search_reports_the_numbers_of_the_pair_scorer(config: AnyConfig) -> None:
    model = confident_model(config, scale=0.2, dtype=torch.bfloat16)
    found = Translator([model], config=DecodingConfig(beam=4, nbest=4)).translate(LINES[:6])
    ours = [
        (SentencePair(line, one.text), one.log_prob)
        for line, all_ in zip(LINES[:6], found, strict=True)
        for one in all_
    ]
    assert ours
    again = ModelPairScorer([model]).score([pair for pair, _ in ours])
    assert [score.log_prob for score in again] == pytest.approx([number for _, number in ours], abs=1e-4)


def test_the_signature_names_them_where_they_are_used(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    signatures = [
        ModelPairScorer([confident_model(CONFIGS[0], scale=0.2, dtype=dtype)]).signature
        for dtype in (torch.bfloat16, torch.float32)
    ]
    assert f"|kernels:{library.version}|torch:" in signatures[0] and "kernels:" not in signatures[1]
    monkeypatch.setattr(kernels, "load", lambda: None)
    model = confident_model(CONFIGS[0], scale=0.2, dtype=torch.bfloat16)
    assert "kernels:" not in ModelPairScorer([model]).signature
