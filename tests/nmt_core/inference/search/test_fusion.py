"""Shallow fusion: sums of two models' scores, and nothing at weight zero."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import pad
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.ensemble import Ensemble, FusedLanguageModel
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.inference.conftest import KINDS, random_model
from tests.searching import beam_search

MakeModel = Callable[..., TranslationModel]


LANGUAGE_MODELS = ("gru", "lstm", "cslm")


def language_model(words: int, *, kind: str = "gru") -> TranslationModel:
    return random_model(kind, words=words, seed=9, source_words=2)


def loaded_language_model(target: Vocabulary, *, weight: float) -> FusedLanguageModel:
    config = FolderConfig(model=KINDS["gru"])
    model = language_model(len(target))
    return FusedLanguageModel(LoadedModel(model, Vocabulary(SPECIAL_WORDS), target, config, "f" * 12, "lm"), weight)


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
@torch.inference_mode()
def test_a_step_is_the_sum_of_both(tiny: MakeModel, kind: str) -> None:
    model, language = tiny(words=150, seed=1), language_model(150, kind=kind)
    source = pad([[2, 3], [4]])
    fused = Ensemble([ModelPredictor(model), ModelPredictor(language)], language_weight=0.3)
    memory, state = fused.begin([Sentence([2, 3]), Sentence([4])])
    own_memory, lm_memory = model.encode(source), language.encode(source)
    own, lm = model.start(own_memory), language.start(lm_memory)
    for previous in (torch.tensor([NO_WORD, NO_WORD]), torch.tensor([5, 140])):
        advance = fused.advance(previous, state, memory)
        step, said = model.step(previous, own, own_memory), language.step(previous, lm, lm_memory)
        expected = model.generator.log_probs(step.readout_NL) + 0.3 * language.generator.log_probs(said.readout_NL)
        torch.testing.assert_close(advance.log_probs_NV, expected)
        torch.testing.assert_close(advance.tops_NG.amax(dim=1), advance.scores_NV.amax(dim=1))
        state, own, lm = advance.state, step.state, said.state


@pytest.mark.parametrize("kind", ["gru", "cslm"])
def test_search_finds_the_best_sums(
    tiny: MakeModel, brute_force: Callable[..., dict[tuple[int, ...], float]], kind: str
) -> None:
    model, language = tiny(words=5, seed=2), language_model(5, kind=kind)
    own = brute_force(model, [2, 3], longest=4, words=5)
    said = brute_force(language, [], longest=4, words=5)
    fused = Ensemble([ModelPredictor(model), ModelPredictor(language)], language_weight=0.7)
    config = DecodingConfig(beam=500, nbest=20, length_normalization=0.0, max_length_ratio=0.0, max_length_extra=4)
    (found,) = beam_search(fused, pad([[2, 3]]), config=config)
    totals = {words: own[words] + 0.7 * said[words] for words in own}
    best = sorted(totals, key=lambda words: -totals[words])[:20]
    assert [hypothesis.words for hypothesis in found] == best
    assert [hypothesis.log_prob for hypothesis in found] == pytest.approx([totals[words] for words in best])
    assert best != sorted(own, key=lambda words: -own[words])[:20]


def test_what_is_no_language_model_of_the_target_is_refused(load_tiny: Callable[..., LoadedModel]) -> None:
    model = load_tiny("rnnsearch")
    with pytest.raises(ConfigError, match="no language model"):
        Translator([model], fusion=FusedLanguageModel(model, 0.1))
    other = Vocabulary([*model.target.words, "chat"])
    with pytest.raises(ConfigError, match=r"target_vocabulary: folder-3/target\.vocab"):
        Translator([model], fusion=loaded_language_model(other, weight=0.1))
