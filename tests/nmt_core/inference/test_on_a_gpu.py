"""Scoring and decoding on a GPU: the CPU's numbers, every tensor on the right device, and no needless waiting.

Where there is no GPU the same is done on a pretended one, which also counts how often the program waits for it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring import walk as tree_walk
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer, Softmax
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.ensemble import FusedLanguageModel
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import ModelConfig, new_model
from nmt_core.models.deep_fusion import fuse
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLM, RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.pretended_gpu import PretendedGPU
from tests.spelling_models import spelling_model

Place = Callable[[LoadedModel], LoadedModel]

WORDS = [f"w{number}" for number in range(30)]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *WORDS])
SIZES = {"embedding": 6, "hidden": 10, "maxout": 4}
CONFIGS: dict[str, ModelConfig] = {
    "rnnsearch": RNNsearchConfig(alignment=7, **SIZES),
    "rnnencdec": RNNencdecConfig(**SIZES),
    "rnnencdec-cho2014": RNNencdecConfig(summary="tanh", reset="context", order="conditional", output_rank=3, **SIZES),
    "rnnlm": RNNLMConfig(embedding=6, hidden=10),
    "rnnlm-lstm": RNNLMConfig(embedding=6, hidden=10, cell="lstm"),
}


def loaded(kind: str, *, seed: int = 1) -> LoadedModel:
    """A random model in double precision, with opinions."""
    model = new_model(CONFIGS[kind], len(VOCABULARY), len(VOCABULARY), seed=seed).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.7)
    return LoadedModel(model, VOCABULARY, VOCABULARY, FolderConfig(model=CONFIGS[kind]), "0" * 12, kind)


def deeply_fused() -> LoadedModel:
    translation, language = loaded("rnnsearch"), loaded("rnnlm-lstm")
    assert isinstance(translation.model, RNNsearch)
    assert isinstance(language.model, RNNLM)
    model = fuse(translation.model, language.model, list(range(len(VOCABULARY)))).double().eval().requires_grad_(False)
    return replace(translation, model=model)


@torch.inference_mode()
def there(one: LoadedModel) -> LoadedModel:
    """The same model on the GPU."""
    return replace(one, model=copy.deepcopy(one.model).to("cuda"))


def some_texts(count: int, *, least: int = 0) -> list[str]:
    generator = random.Random(5)
    return [" ".join(generator.choices([*WORDS, "unseen"], k=generator.randint(least, 8))) for _ in range(count)]


def some_pairs(count: int) -> list[SentencePair]:
    generator = random.Random(6)
    sources = some_texts(20)
    return [SentencePair(generator.choice(sources), text) for text in some_texts(count)]


def assert_same_scores(found: list[PairScore], wanted: list[PairScore]) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.log_prob == pytest.approx(theirs.log_prob, abs=1e-9)
        assert mine.word_log_probs == pytest.approx(theirs.word_log_probs, abs=1e-9)
        for row, other in zip(mine.attention or (), theirs.attention or (), strict=True):
            assert row == pytest.approx(other, abs=1e-6)


def assert_same_translations(found: list[list[Translation]], wanted: list[list[Translation]]) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        assert [one.text for one in mine] == [one.text for one in theirs]
        assert [one.log_prob for one in mine] == pytest.approx([one.log_prob for one in theirs], abs=1e-9)


@pytest.mark.parametrize("softmax", [5, "none"])
def test_scores_with_another_softmax_are_the_cpus(softmax: Softmax, gpu: PretendedGPU | None) -> None:
    models = [loaded("rnnsearch"), loaded("rnnencdec-cho2014")]
    wanted = ModelPairScorer(models, softmax=softmax).score(some_pairs(50), per_word=True)
    found = ModelPairScorer([there(model) for model in models], softmax=softmax).score(some_pairs(50), per_word=True)
    assert_same_scores(found, wanted)


@pytest.mark.parametrize("max_nodes", [tree_walk.MAX_NODES, 0])
@pytest.mark.parametrize("kind", CONFIGS)
def test_scoring_waits_once(
    kind: str, max_nodes: int, gpu: PretendedGPU | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at every level nor for every batch: the next is prepared while the GPU works."""
    if gpu is None:
        pytest.skip("only the pretended GPU counts")
    monkeypatch.setattr(tree_walk, "MAX_NODES", max_nodes)
    scorer = ModelPairScorer([there(loaded(kind))])
    before = gpu.waits
    scorer.score(some_pairs(200))
    assert gpu.waits - before == 1


def translators() -> dict[str, Callable[[Place], Translator]]:
    """Every kind of search, of models that a function puts somewhere."""
    search, encdec, language = loaded("rnnsearch"), loaded("rnnencdec", seed=2), loaded("rnnlm", seed=3)
    two = DecodingConfig(beam=4, nbest=3)
    return {
        "beam": lambda at: Translator([at(search)], config=two, batch_tokens=40),
        "fused": lambda at: Translator([at(deeply_fused())], config=two),
        "sampling": lambda at: Translator([at(search)], config=SamplingConfig(samples=3)),
        "ensemble": lambda at: Translator([at(search), at(encdec)], config=two),
        "language model": lambda at: Translator([at(encdec)], fusion=FusedLanguageModel(at(language), 0.3)),
        "candidates": lambda at: Translator([at(search)], candidates=CandidateLists(VOCABULARY, frequent=9)),
        "unknown words": lambda at: Translator([at(search)], unknowns=UnknownReplacement("copy")),
    }


@pytest.mark.parametrize("name", translators())
def test_translations_are_the_cpus(name: str, gpu: PretendedGPU | None) -> None:
    make = translators()[name]
    sources = some_texts(30)
    assert_same_translations(make(there).translate(sources), make(lambda one: one).translate(sources))


def test_a_tensor_left_on_the_cpu_is_an_error() -> None:
    """The pretended GPU is as strict as one."""
    with PretendedGPU():
        there_N, here_N = torch.arange(3.0).to("cuda"), torch.arange(3.0)
        assert there_N.is_cuda
        assert (there_N + 1.0).cpu().tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(RuntimeError, match="two devices"):
            there_N + here_N
        with pytest.raises(RuntimeError, match="two devices"):
            there_N[here_N.long()]


def test_words_are_spelled_there(gpu: PretendedGPU | None) -> None:
    one = spelling_model(dtype=torch.float64)
    texts = [("the axolotl is", "la abba de"), ("the quokka", "dad dad"), ("of", "la")]
    pairs = [SentencePair(*text) for text in texts]
    mine, theirs = (ModelPairScorer([model]).score(pairs) for model in (one, there(one)))
    assert [score.log_prob for score in theirs] == pytest.approx([score.log_prob for score in mine], abs=1e-9)
    for config in (DecodingConfig(beam=3, nbest=2), SamplingConfig(samples=2)):
        found = [Translator([model], config=config).translate(["the axolotl is", "tux"]) for model in (one, there(one))]
        here, beside = ([[translation.text for translation in nbest] for nbest in one] for one in found)
        assert here == beside
