"""Unknown target words are spelled: in scores of pairs, in search and in samples, with one number everywhere."""

from __future__ import annotations

import pytest
import torch

from nmt_core.data.batching import Batch
from nmt_core.errors import ConfigError
from nmt_core.inference.pair_scorer import ModelPairScorer
from nmt_core.interfaces import SentencePair
from nmt_core.models.build import new_model
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.text.target_order import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.spelling_models import SOURCE, TARGET, spelling_model

PAIRS = [
    SentencePair("the axolotl is", "la abba de"),
    SentencePair("the axolotl is", "la abba b"),
    SentencePair("the axolotl is", "la dad de"),
    SentencePair("the quokka is", "la dad de"),
    SentencePair("the quokka is", "<unk> dad abba abba"),
    SentencePair("of", "qq"),  # cannot be spelled
    SentencePair("of", "<unk>"),
    SentencePair("", "abcabc"),
    SentencePair("the", ""),
    SentencePair("the", "la de"),
]


def forward(loaded: LoadedModel, pair: SentencePair) -> list[float]:
    batch = Batch(
        loaded.model.collate([loaded.encode_text(pair.source)]),
        loaded.model.collate_targets([loaded.encode_target(pair.target)]),
    )
    numbers: list[float] = loaded.model(batch)[0].tolist()
    return list(loaded.target_order.rows(numbers))


@pytest.mark.parametrize("order", TargetOrder)
@pytest.mark.parametrize("path", ["separate", "same"])
def test_pairs_have_the_numbers_of_the_model(order: TargetOrder, path: str) -> None:
    loaded = spelling_model(order=order, path=path)
    for pair, score in zip(PAIRS, ModelPairScorer([loaded]).score(PAIRS, per_word=True), strict=True):
        assert score.word_log_probs is not None
        assert score.word_log_probs == pytest.approx(forward(loaded, pair), abs=1e-5)
        assert score.log_prob == pytest.approx(sum(score.word_log_probs), abs=1e-6)
        assert score.unknown_target == sum(word not in TARGET for word in pair.target.split())


def test_spellings_tell_pairs_apart_and_what_has_none_is_unknown() -> None:
    scores = ModelPairScorer([spelling_model()]).score(PAIRS)
    assert abs(scores[0].log_prob - scores[2].log_prob) > 1e-3
    assert scores[5] == scores[6]._replace()


def test_words_of_other_spellings_are_read_alike() -> None:
    """What follows them has the same numbers, since the word level reads ``<unk>``."""
    scores = ModelPairScorer([spelling_model()]).score(PAIRS, per_word=True)
    first, third = scores[0].word_log_probs, scores[2].word_log_probs
    assert first is not None and third is not None
    assert (first[0], first[2:]) == (third[0], third[2:])


def test_an_ensemble_has_the_mean_of_its_members() -> None:
    members = [spelling_model(1), spelling_model(2, path="same", source=Vocabulary([*SPECIAL_WORDS, "quokka"]))]
    alone = [ModelPairScorer([member]).score(PAIRS, per_word=True) for member in members]
    for score, one, other in zip(ModelPairScorer(members).score(PAIRS, per_word=True), *alone, strict=True):
        assert score.word_log_probs is not None and one.word_log_probs is not None and other.word_log_probs is not None
        means = [(first + second) / 2 for first, second in zip(one.word_log_probs, other.word_log_probs, strict=True)]
        assert score.word_log_probs == pytest.approx(means, abs=1e-6)


def words_alone() -> LoadedModel:
    spells = spelling_model(3)
    config = DeepLSTMConfig(embedding=4, hidden=4, depth=1)
    model = new_model(config, len(SOURCE), len(TARGET), seed=1).eval().requires_grad_(False)
    return LoadedModel(model, SOURCE, TARGET, spells.config.model_copy(update={"model": config}), "0" * 12, "words")


def test_members_spell_all_or_none_and_with_the_same_characters() -> None:
    with pytest.raises(ConfigError, match="hybrid1 spells unknown target words and words does not"):
        ModelPairScorer([words_alone(), spelling_model(1)])
    for other in ({"target_characters": "abce"}, {"longest_spelling": 5}):
        with pytest.raises(ConfigError, match="hybrid1 and hybrid2 spell with other characters"):
            ModelPairScorer([spelling_model(1), spelling_model(2, **other)])


def test_coarse_numbers_are_near() -> None:
    exact = ModelPairScorer([spelling_model()]).score(PAIRS)
    coarse = ModelPairScorer([spelling_model(dtype=torch.bfloat16)]).score(PAIRS)
    for one, other in zip(exact, coarse, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=0.3)
