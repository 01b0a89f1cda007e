"""Scoring over prefix trees: every pair's number is that of the pair alone, whatever it shares with others."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad, pad_pairs
from nmt_core.inference.scoring import pair_scorer
from nmt_core.inference.scoring import walk as tree_walk
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.interface import NO_WORD
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import END_ID, SPECIAL_WORDS, Vocabulary

WORDS = ["a", "b", "c", "d", "e", "f"]
SIZES = {"embedding": 6, "hidden": 10, "maxout": 4, "initialisation": "glorot"}
CONFIGS = {
    "rnnsearch": RNNsearchConfig(alignment=7, **SIZES),
    "rnnsearch-conditional": RNNsearchConfig(alignment=7, order="conditional", tied=True, **SIZES),
    "rnnencdec": RNNencdecConfig(**SIZES),
    "rnnlm": RNNLMConfig(embedding=6, hidden=10, initialisation="glorot", tied=True),
    "rnnencdec-cho2014": RNNencdecConfig(summary="tanh", reset="context", order="conditional", output_rank=3, **SIZES),
}


def loaded(kind: str, *, seed: int = 1, dtype: torch.dtype = torch.float32) -> LoadedModel:
    vocabulary = Vocabulary([*SPECIAL_WORDS, *WORDS])
    config = CONFIGS[kind]
    model = new_model(config, len(vocabulary.words), len(vocabulary.words), seed=seed).to(dtype).eval()
    return LoadedModel(model, vocabulary, vocabulary, FolderConfig(model=config), "0" * 12, kind)


MODELS = {kind: loaded(kind) for kind in CONFIGS}


def alone(one: LoadedModel, pair: SentencePair) -> list[float]:
    """The words of one pair by the model's own forward pass."""
    with torch.no_grad():
        batch = pad_pairs([(one.source.encode(pair.source), one.target.encode(pair.target))])
        return one.model(batch)[0].double().tolist()


@pytest.mark.parametrize("written", ["</s>", "<unk>", "<s>"])
def test_a_special_word_written_in_a_text_is_an_unknown_word(written: str) -> None:
    one = MODELS["rnnsearch"]
    scorer = ModelPairScorer([one])
    special, unknown = scorer.score(
        [SentencePair(f"a {word} b", f"c {word} d") for word in (written, "unheard-of")], per_word=True
    )
    assert special.word_log_probs == pytest.approx(unknown.word_log_probs, abs=1e-5)  # other rows of a product
    assert special.unknown_target == unknown.unknown_target
    assert special.unknown_source == special.unknown_target == 1
    assert pad([one.target.encode(f"c {written} d")]).words_BL[0].tolist().count(END_ID) == 1


def looked_at(one: LoadedModel, pair: SentencePair) -> list[list[float]]:
    """The attention of every step of one pair."""
    with torch.no_grad():
        memory = one.model.encode(pad([one.source.encode(pair.source)]))
        state, previous, rows = one.model.start(memory), NO_WORD, []
        for word in [*one.target.encode(pair.target), END_ID]:
            step = one.model.step(torch.tensor([previous]), state, memory)
            assert step.attention_NS is not None
            rows.append(step.attention_NS[0].tolist())
            state, previous = step.state, word
    return rows


texts = st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=6).map(" ".join)
pairs_given = st.lists(st.builds(SentencePair, texts, texts), max_size=25)


@pytest.mark.parametrize("kind", list(CONFIGS))
@settings(max_examples=25)
@given(pairs=pairs_given)
def test_every_word_scores_as_in_the_pair_alone(kind: str, pairs: list[SentencePair]) -> None:
    for pair, score in zip(pairs, ModelPairScorer([MODELS[kind]]).score(pairs, per_word=True), strict=True):
        assert score.word_log_probs == pytest.approx(alone(MODELS[kind], pair), abs=1e-5)
        assert score.log_prob == pytest.approx(sum(alone(MODELS[kind], pair)), abs=1e-5)


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_small_batches_give_the_same_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(7)
    some = [" ".join(generator.choices(WORDS, k=generator.randint(0, 8))) for _ in range(30)]
    pairs = [SentencePair(generator.choice(some[:6]), text) for text in some]
    together = [score.log_prob for score in ModelPairScorer([MODELS[kind]]).score(pairs)]
    monkeypatch.setattr(tree_walk, "MAX_NODES", 5)
    monkeypatch.setattr(tree_walk, "MAX_POSITIONS", 5)
    monkeypatch.setattr(pair_scorer, "MAX_PADDED", 20)
    assert [score.log_prob for score in ModelPairScorer([MODELS[kind]]).score(pairs)] == pytest.approx(
        together, abs=1e-5
    )


def test_attention_rows_are_the_decoders_and_sum_to_one() -> None:
    model = MODELS["rnnsearch"]
    pairs = [SentencePair("a b c", "d e"), SentencePair("a", "d e f"), SentencePair("a b c", "d"), SentencePair("", "")]
    for pair, score in zip(pairs, ModelPairScorer([model]).score(pairs, attention=True), strict=True):
        expected = looked_at(model, pair)
        assert score.attention is not None
        assert len(score.attention) == len(expected) == len(pair.target.split()) + 1
        for row, wanted in zip(score.attention, expected, strict=True):
            assert sum(row) == pytest.approx(1.0, abs=1e-5)
            assert row == pytest.approx(wanted, abs=1e-5)
    (without,) = ModelPairScorer([MODELS["rnnencdec"]]).score([SentencePair("a", "b")], attention=True)
    assert without.attention is None


def test_a_damaged_model_gives_numbers_that_say_so() -> None:
    damaged = loaded("rnnsearch")
    with torch.no_grad():
        damaged.model.output.weight[3] = float("nan")
    score = ModelPairScorer([damaged]).score([SentencePair("a", "b")])[0]
    assert score.log_prob != score.log_prob


def test_without_the_normaliser_scores_are_sums_of_logits() -> None:
    model = MODELS["rnnencdec"]
    score = ModelPairScorer([model], softmax="none").score([SentencePair("a b", "c")])[0]
    batch = pad_pairs([(model.source.encode("a b"), model.target.encode("c"))])
    with torch.no_grad():
        logits = model.model.generator.logits(model.model.known_targets(batch).readouts_BTL[0])
    assert score.log_prob == pytest.approx(sum(logits[[0, 1], batch.target.words_BL[0]].tolist()), abs=1e-5)


def test_the_signature_says_what_the_last_digits_depend_on() -> None:
    signature = ModelPairScorer([MODELS["rnnsearch"]]).signature
    instructions = torch.backends.cpu.get_cpu_capability()
    assert f"|dtype:float32|device:cpu|cpu:{instructions}|sums:" in signature
    assert f"|torch:{torch.__version__}|version:" in signature
    assert "exact:no" not in signature
    assert "softmax:none|exact:no" in ModelPairScorer([MODELS["rnnsearch"]], softmax="none").signature
    assert "exact:no|dtype:bfloat16" in ModelPairScorer([loaded("rnnsearch", dtype=torch.bfloat16)]).signature
