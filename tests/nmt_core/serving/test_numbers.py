"""Scores over gRPC beside the same scorer in-process, with logits as large as those of trained models."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.serving.client.client import RemotePairScorer
from smt_bridge.models import one_thread
from tests.confident_models import confident_model, text_of

RELATIVE, ABSOLUTE = 1e-6, 1e-5


@pytest.fixture(scope="module")
def confident(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 128 units, random."""
    config = RNNsearchConfig(embedding=64, hidden=128, maxout=64, alignment=128)
    folder = tmp_path_factory.mktemp("confident") / "model"
    confident_model(config, scale=0.15).save(str(folder))
    return folder


def pairs_of(chance: random.Random, count: int) -> list[SentencePair]:
    def text() -> str:
        return text_of(chance, chance.randint(1, 40))

    return [SentencePair(text(), text()) for _ in range(count)]


def test_scores_alone_and_in_company(start_here, confident: Path) -> None:
    server = start_here("--model", f"m={confident}", "--threads", "1")
    scorer = ModelPairScorer([load_model(str(confident))])
    pairs = pairs_of(random.Random(1), 12)
    remote = RemotePairScorer(server.address)
    with one_thread():  # as the server
        expected = [scorer.score([pair])[0].log_prob for pair in pairs]
    assert min(expected) < -500
    assert [remote.score([pair])[0].log_prob for pair in pairs] == expected
    company = [pytest.approx(one, rel=RELATIVE, abs=ABSOLUTE) for one in expected]
    end = threading.Event()

    def others(seed: int) -> None:
        chance, client = random.Random(seed), RemotePairScorer(server.address)
        while not end.is_set():
            client.score(pairs_of(chance, chance.randint(1, 20)))

    threads = [threading.Thread(target=others, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            assert [one.log_prob for one in remote.score(pairs)] == company
            place = number % len(pairs)
            assert remote.score([pairs[place]])[0].log_prob == company[place]
    finally:
        end.set()
        for thread in threads:
            thread.join()
