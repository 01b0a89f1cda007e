"""Scoring and decoding on a GPU, by all presets, options of models and options of search: the CPU's numbers.

Where there is no GPU the same is done on a pretended one, which also counts how often the program waits for it.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from nmt_core.base.interfaces import NgramGuidance, PairScore, SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.guided_search import GuidedTranslator
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring import walk as tree_walk
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_fusion import fuse
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.presets import PRESETS
from nmt_core.models.rnnlm import RNNLM, RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.inference.conftest import drawn_model
from tests.nmt_core.inference.search.test_guided import random_guide
from tests.pretended_gpu import PretendedGPU
from tests.spelling_models import spelling_model

WORDS = ["un", "groupe", "d&apos;", "hommes", ".", "w0", "w1"]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *WORDS])
SIZES: dict[str, Any] = {"embedding": 4, "hidden": 5, "maxout": 3, "alignment": 3, "output_rank": 3, "depth": 2}
SMALL: dict[str, Any] = {"embedding": 4, "hidden": 5, "maxout": 3, "alignment": 3}
SPELLED = {"source_characters": "abcw01", "target_characters": "abcw01", "longest_spelling": 5}
PAIRS = [
    SentencePair("un groupe d&apos; hommes .", "w0 w1 un . hommes groupe"),
    SentencePair("un groupe d&apos; hommes .", "w0 w1 abc"),
    SentencePair("w1", ""),
    SentencePair("", ". un"),
]
SOURCES = ["un groupe w1", "hommes", "w0 . w0 abc"]
OPTIONS: dict[str, AnyConfig] = {
    **{
        f"deep LSTM {' '.join(map(str, settings.values()))}": DeepLSTMConfig(embedding=4, hidden=5, depth=2, **settings)
        for settings in (
            {"attention": None, "reverse": False},
            {"attention": None, "output_bias": True},
            *(
                {"attention": score, "feeding": fed}
                for score in ("dot", "general", "concat", "location")
                for fed in (0, 1)
            ),
            *(
                {"attention": score, "window": window, "radius": 1, "feeding": True}
                for score in ("dot", "general", "concat")
                for window in ("local-m", "local-p")
            ),
            *({"attention": score, "aligns": "read"} for score in ("dot", "general", "concat")),
            {"attention": "general", "window": "local-p", "radius": 1, "reverse": False, "aligns": "read"},
            {"attention": "dot", "feeding": True, "reverse": False},
            {"attention": "location", "places": 3, "reverse": False},
        )
    },
    "Nematus deep": NematusConfig(embedding=4, hidden=5, encoder_transitions=2, decoder_transitions=3, tied=True),
    "Nematus, parts normalised": NematusConfig(embedding=4, hidden=5, normalisation="parts"),
    "Nematus, whole normalised": NematusConfig(embedding=4, hidden=5, normalisation="whole", shared_embeddings=True),
    "RNNsearch conditional": RNNsearchConfig(order="conditional", tied=True, **SMALL),
    "RNNsearch deep": RNNsearchConfig(cell="lstm", shared_embeddings=True, **SMALL),
    "RNNLM of LSTM": RNNLMConfig(embedding=4, hidden=5, cell="lstm"),
    "CSLM": CSLMConfig(order=4, embedding=4, hidden=(5, 4)),
}
LANGUAGE_MODELS = ("rnnlm", "cslm")


def small(name: str) -> AnyConfig:
    """A preset with few units."""
    known = PRESETS[name].to_mapping()
    sizes = {**SIZES, **SPELLED, **({"hidden": (5, 4)} if known["type"] == "cslm" else {})}
    return type(PRESETS[name]).model_validate({**known, **{key: sizes[key] for key in sizes.keys() & known.keys()}})


CONFIGS = {**{name: small(name) for name in PRESETS}, **OPTIONS}


@functools.cache
def loaded(name: str, seed: int = 1) -> LoadedModel:
    """A model in double precision with weights at random."""
    config = CONFIGS[name]
    model = drawn_model(config, words=len(VOCABULARY), seed=seed, source_words=len(VOCABULARY), scale=0.7)
    return LoadedModel(model, VOCABULARY, VOCABULARY, FolderConfig(model=config), f"{seed:012}", name)


@torch.inference_mode()
def there(one: LoadedModel) -> LoadedModel:
    """The same model on the GPU."""
    return replace(one, model=copy.deepcopy(one.model).to("cuda"))


def some_pairs(count: int) -> list[SentencePair]:
    generator = random.Random(6)
    texts = [" ".join(generator.choices([*WORDS, "unseen"], k=generator.randint(0, 8))) for _ in range(count)]
    return [SentencePair(generator.choice(texts[:20]), text) for text in texts]


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


AGAIN = ("luong2015-global-", "luong2015-local-", "luong2015-copy")  # which differ from others in sizes alone


@pytest.mark.parametrize("name", [name for name in CONFIGS if not name.startswith(AGAIN)])
def test_every_model_is_the_cpus(name: str, gpu: PretendedGPU | None) -> None:
    """Scores of pairs and of words, attention where there is some, and translations."""
    here = loaded(name)
    beyond = there(here)
    attends = make_predictor([here]).aligns is not None
    wanted, found = (ModelPairScorer([one]).score(PAIRS, per_word=True, attention=attends) for one in (here, beyond))
    assert_same_scores(found, wanted)
    if here.config.model.type not in LANGUAGE_MODELS:
        config = DecodingConfig(beam=3, nbest=2, max_length_ratio=0, max_length_extra=3)
        mine, theirs = (Translator([one], config=config).translate(SOURCES) for one in (beyond, here))
        assert_same_translations(mine, theirs)


@pytest.mark.parametrize("name", [name for name in CONFIGS if not name.startswith("luong2015")])  # they are options
def test_every_gradient_is_the_cpus(name: str, gpu: PretendedGPU | None) -> None:
    here = loaded(name)
    gradients = []
    for device in ("cpu", "cuda"):
        model = build_model(CONFIGS[name], len(VOCABULARY), len(VOCABULARY)).double()
        model.load_state_dict(here.model.state_dict())
        model = model.to(device).eval()
        sources, targets = (
            [Sentence(VOCABULARY.encode(getattr(pair, side)), getattr(pair, side)) for pair in PAIRS]
            for side in ("source", "target")
        )
        batch = Batch(model.collate(sources), model.collate_targets(targets)).to(device)
        model(batch).sum().backward()
        gradients.append({key: one.grad.cpu() for key, one in model.named_parameters() if one.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, rtol=1e-7, atol=1e-9)


ADVICE = NgramGuidance({("un",): 0.5, ("un", "groupe"): 0.3, ("w0",): 0.1}, weight=0.7, factors=(1.0, 1.0, 1.0, 1.0))
LINES = {
    "constraints": [
        SourceLine(
            source, constraints=(PhraseConstraint(("un groupe", "w1")), PhraseConstraint((".",), required=False))
        )
        for source in SOURCES
    ],
    "advice": [SourceLine(source, guidance=ADVICE) for source in SOURCES],
    "plain": [SourceLine(source) for source in SOURCES],
}
SEARCHES = {
    "forbidden": DecodingConfig(beam=4, nbest=2, forbid_unknown=True, length_normalization=0.6),
    "sampling": SamplingConfig(samples=3, temperature=0.7, by_text=True),
    "all": DecodingConfig(beam=4, nbest=2, forbid_unknown=True, min_length=2),
}
ENSEMBLES = {
    "one": ["rnnsearch"],
    "several": ["rnnsearch", "nematus", "luong2015-local-p-general-feed", "rnnencdec"],
}
CASES = {
    **{how: ("plain", how, "one") for how in SEARCHES},
    **{lines: (lines, "all", "one") for lines in LINES},
    **{f"{lines}, ensemble": (lines, "all", "several") for lines in LINES},
    "sampling, ensemble": ("plain", "sampling", "several"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_option_of_search_is_the_cpus(case: str, gpu: PretendedGPU | None) -> None:
    lines, how, models = CASES[case]

    def translated(place: Callable[[LoadedModel], LoadedModel]) -> Any:
        config = SEARCHES[how].model_copy(update={"max_length_ratio": 0, "max_length_extra": 4})
        return Translator([place(loaded(name)) for name in ENSEMBLES[models]], config=config).translate(LINES[lines])

    assert_same_translations(translated(there), translated(lambda one: one))


def test_search_among_given_texts_is_the_cpus(gpu: PretendedGPU | None) -> None:
    guides = [random_guide(seed) for seed in range(len(SOURCES))]
    here, beyond = (
        GuidedTranslator([place(loaded(name)) for name in ("rnnsearch", "nematus")], beam=5, nbest=3).translate(
            SOURCES, guides
        )
        for place in (lambda one: one, there)
    )
    for mine, theirs in zip(beyond, here, strict=True):
        assert [one.reached for one in mine.hypotheses] == [one.reached for one in theirs.hypotheses]
        assert [one.score for one in mine.hypotheses] == pytest.approx(
            [one.score for one in theirs.hypotheses], abs=1e-9
        )


def test_scores_without_a_softmax_are_the_cpus(gpu: PretendedGPU | None) -> None:
    models = [loaded("rnnsearch"), loaded("rnnencdec-cho2014")]
    wanted = ModelPairScorer(models, softmax="none").score(some_pairs(50), per_word=True)
    found = ModelPairScorer([there(model) for model in models], softmax="none").score(some_pairs(50), per_word=True)
    assert_same_scores(found, wanted)


@pytest.mark.parametrize("max_nodes", [tree_walk.MAX_NODES, 0])
@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec", "rnnencdec-cho2014", "rnnlm", "RNNLM of LSTM"])
def test_scoring_waits_once(
    kind: str, max_nodes: int, gpu: PretendedGPU | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at every level nor for every batch: the next is prepared while the GPU works."""
    if gpu is None:
        pytest.skip("only the pretended GPU counts")
    monkeypatch.setattr(tree_walk, "MAX_NODES", max_nodes)
    scorer = ModelPairScorer([there(loaded(kind))])
    before = gpu.waits
    scorer.score(some_pairs(60))
    assert gpu.waits - before == 1


def deeply_fused() -> LoadedModel:
    translation, language = loaded("rnnsearch"), loaded("RNNLM of LSTM")
    assert isinstance(translation.model, RNNsearch) and isinstance(language.model, RNNLM)
    model = fuse(translation.model, language.model, list(range(len(VOCABULARY)))).double().eval().requires_grad_(False)
    return replace(translation, model=model)


TRANSLATORS: dict[str, Callable[[Callable[[LoadedModel], LoadedModel]], Translator]] = {
    "fused": lambda at: Translator([at(deeply_fused())]),
    "candidates": lambda at: Translator([at(loaded("rnnsearch"))], candidates=CandidateLists(VOCABULARY, frequent=4)),
    "unknown words": lambda at: Translator([at(loaded("rnnsearch"))], unknowns=UnknownReplacement("copy")),
    "spelling": lambda at: Translator(
        [at(spelling_model(dtype=torch.float64))], config=DecodingConfig(beam=3, nbest=2)
    ),
    "spelled samples": lambda at: Translator(
        [at(spelling_model(dtype=torch.float64))], config=SamplingConfig(samples=2)
    ),
}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translations_are_the_cpus(name: str, gpu: PretendedGPU | None) -> None:
    sources = [pair.source for pair in some_pairs(12)] + ["the axolotl is"]
    wanted = TRANSLATORS[name](lambda one: one).translate(sources)
    assert_same_translations(TRANSLATORS[name](there).translate(sources), wanted)
