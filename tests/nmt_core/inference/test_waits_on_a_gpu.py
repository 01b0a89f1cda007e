"""Where scoring, search and sampling wait for a GPU, and that copies to it do not wait, being from pinned memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.inference.scoring import walk as tree_walk
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.beam import BeamSearch
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Request
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.pretended_gpu import PretendedGPU
from tests.spelling_models import spelling_model

VOCABULARY = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(30))])
CONFIG = RNNsearchConfig(embedding=6, hidden=10, maxout=4, alignment=7)
SOURCES = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9", "unseen w2"]
PAIRS = [SentencePair(source, target) for source in SOURCES for target in ("w1 w2 w3", "w1 w2", "w7 w8 w9 w1", "w3")]


@pytest.fixture
def gpu() -> Iterator[PretendedGPU]:
    with PretendedGPU() as pretended:
        yield pretended


@torch.inference_mode()
def there(one: LoadedModel) -> LoadedModel:
    return replace(one, model=one.model.to("cuda"))


def attending() -> LoadedModel:
    model = new_model(CONFIG, len(VOCABULARY), len(VOCABULARY), seed=1).eval().requires_grad_(False)
    for number, parameter in enumerate(model.parameters()):
        parameter.normal_(std=0.7, generator=torch.Generator().manual_seed(number))  # else there are ties
    return LoadedModel(model, VOCABULARY, VOCABULARY, FolderConfig(model=CONFIG), "0" * 12, "attending")


def waits(gpu: PretendedGPU, work: Callable[[], object]) -> Counter[str]:
    """How often each operation waits; there are no copies but queued ones."""
    before = len(gpu.seen)
    work()
    seen = gpu.seen[before:]
    assert {wait.reason for wait in seen} <= {"read"}, seen
    return Counter(wait.operation for wait in seen)


@pytest.mark.parametrize("max_nodes", [tree_walk.MAX_NODES, 0])
def test_attention_of_all_levels_is_read_together(
    max_nodes: int, gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_walk, "MAX_NODES", max_nodes)
    scorer = ModelPairScorer([there(attending())])
    assert waits(gpu, lambda: scorer.score(PAIRS)) == {"cpu": 1}
    assert waits(gpu, lambda: scorer.score(PAIRS, attention=True)) == {"cpu": 2}


def test_samples_are_looked_at_every_sixteen_steps(gpu: PretendedGPU) -> None:
    """And read together at the end; they are those of a CPU, which looks at every step."""
    config = SamplingConfig(samples=3, max_length_ratio=0, max_length_extra=39)
    on_cpu = Translator([attending()], config=config).translate(SOURCES)
    translator, found = Translator([there(attending())], config=config), []
    assert waits(gpu, lambda: found.extend(translator.translate(SOURCES))) <= Counter(is_nonzero=2, cpu=1)
    assert [[one.text for one in nbest] for nbest in found] == [[one.text for one in nbest] for nbest in on_cpu]


def steps_of(gpu: PretendedGPU, model: LoadedModel, *, attention: bool = False) -> list[Counter[str]]:
    """The waits of every step of a search."""
    search = BeamSearch[int](ModelPredictor(model.model), attention=attention)
    config = DecodingConfig(beam=4, max_length_ratio=0, max_length_extra=6)
    search.admit(
        [Request(number, Sentence(VOCABULARY.encode(text), text), config) for number, text in enumerate(SOURCES)]
    )
    found = []
    while search.sentences:
        found.append(waits(gpu, search.step))
    return found


def test_a_step_with_attention_waits_once(gpu: PretendedGPU) -> None:
    found = steps_of(gpu, there(attending()), attention=True)
    assert found == [{"cpu": 1}] * len(found)


def test_a_step_with_ties_waits_twice_however_many_there_are(gpu: PretendedGPU) -> None:
    """Once to see them, once for what was taken of them."""
    model = attending()
    for parameter in model.model.parameters():
        parameter.zero_()
    found = steps_of(gpu, there(model))
    assert {"cpu": 2} in found
    assert all(set(step) == {"cpu"} and step["cpu"] <= 2 for step in found)


@pytest.mark.parametrize("path", ["separate", "same"])
def test_words_are_spelled_without_a_wait(path: str, gpu: PretendedGPU) -> None:
    """Scoring waits for the words, and for their spellings; a forward pass for nothing."""
    model = there(spelling_model(path=path))
    pairs = [SentencePair("the axolotl is", "la abba de"), SentencePair("the quokka", "dad dad"), SentencePair("", "d")]
    assert waits(gpu, lambda: ModelPairScorer([model]).score(pairs)) == {"cpu": 2}
    batch = Batch(
        model.model.collate([Sentence(model.source.encode(pair.source), pair.source) for pair in pairs]),
        model.model.collate_targets([Sentence(model.target.encode(pair.target), pair.target) for pair in pairs]),
    ).to("cuda")
    with torch.inference_mode():
        assert not waits(gpu, lambda: model.model(batch))
