"""Where training waits for a GPU: once an update, for the norm of the gradient and the loss together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import ModelConfig, new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.corpus import BatchPlan, encode_corpus
from nmt_core.training.fingerprint import RunIdentity
from nmt_core.training.report import Reporter
from nmt_core.training.tasks import Task
from nmt_core.training.trainer import Trainer
from tests.pretended_gpu import PretendedGPU

VOCABULARY = Vocabulary([*SPECIAL_WORDS, "a", "b", "c"])
PAIRS = [("a b xyz", "c yx a"), ("b", "a"), ("zzz c", "b b x"), ("c c c", "a yyx")]
CHARACTERS = {"source_characters": "xyz", "target_characters": "xy"}
CONFIGS: dict[str, ModelConfig] = {
    "rnnsearch": RNNsearchConfig(embedding=4, hidden=5, alignment=3, maxout=3),
    "deep-lstm": DeepLSTMConfig(embedding=4, hidden=5, depth=2),
    "hybrid": HybridConfig(embedding=4, hidden=5, depth=1, **CHARACTERS),
}


@pytest.fixture
def gpu() -> Iterator[PretendedGPU]:
    with PretendedGPU() as pretended:
        yield pretended


class Enough(Exception):
    """Ends a run."""


class Counting(Reporter):
    """Keeps what each update but the first waited for."""

    def __init__(self, config: TrainingConfig, gpu: PretendedGPU) -> None:
        super().__init__(config, quiet=True, interval=math.inf)
        self.gpu, self.ends, self.updates = gpu, list[int](), list[Counter[str]]()

    def update(self, *given: Any) -> None:
        super().update(*given)
        if self.ends:
            self.updates.append(Counter(wait.operation for wait in self.gpu.seen[self.ends[-1] :]))
        self.ends.append(len(self.gpu.seen))
        if len(self.updates) == 2:
            raise Enough


def task_of(kind: str) -> Task:
    config = CONFIGS[kind]
    model = new_model(config, len(VOCABULARY), len(VOCABULARY), seed=1).requires_grad_(True)
    loaded = LoadedModel(model, VOCABULARY, VOCABULARY, FolderConfig(model=config), "0" * 12, kind)
    texts = {"keep_text": model.reads_text, "keep_target_text": model.spells}
    corpus = encode_corpus(PAIRS * 4, loaded.encode_text, VOCABULARY.encode, **texts)
    model.to("cuda")
    return Task("text 1", loaded, corpus, BatchPlan(sentences=4, window=1))


@pytest.mark.parametrize("settings", [{}, {"clip": 1e-3, "update_every": 2}, {"optimizer": "sgd", "microbatches": 2}])
@pytest.mark.parametrize("kind", CONFIGS)
def test_an_update_waits_once(kind: str, settings: dict[str, Any], gpu: PretendedGPU) -> None:
    config = TrainingConfig.model_validate({"max_updates": 9, **settings})
    reporter = Counting(config, gpu)
    with pytest.raises(Enough):
        Trainer([task_of(kind)], config, run=RunIdentity({}, {}, {}, {}), reporter=reporter).train()
    assert reporter.updates == [{"cpu": 1}, {"cpu": 1}]
