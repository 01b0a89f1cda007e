"""Ensembles: twins, means, and members with different source vocabularies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from nmt_core.batches.padding import Padded, pad
from nmt_core.batches.tensor_tree import _map
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.searching import beam_search

MakeModel = Callable[..., TranslationModel]


def test_an_ensemble_of_twins_is_one_model(tiny: MakeModel, sources: Padded) -> None:
    one = ModelPredictor(tiny(words=20, seed=1))
    config = DecodingConfig(beam=5, nbest=5)
    alone = beam_search(one, sources, config=config, attention=True)
    twins = beam_search(Ensemble([one, one]), sources, config=config, attention=True)
    for mine, theirs in zip(alone, twins, strict=True):
        assert [h.words for h in mine] == [h.words for h in theirs]
        np.testing.assert_allclose([h.log_prob for h in mine], [h.log_prob for h in theirs], atol=1e-9)
        if mine[0].attention is not None and theirs[0].attention is not None:
            np.testing.assert_allclose(mine[0].attention, theirs[0].attention, atol=1e-6)


def test_two_models_are_averaged(tiny: MakeModel) -> None:
    members = [ModelPredictor(tiny(words=20, seed=seed)) for seed in (1, 2)]
    sources, previous = [Sentence([2, 3]), Sentence([4])], torch.full((2,), NO_WORD)

    def first_step(predictor: ModelPredictor | Ensemble) -> torch.Tensor:
        memory, state = predictor.begin(sources)
        return predictor.advance(previous, state, memory).log_probs_NV

    one, other = map(first_step, members)
    torch.testing.assert_close(first_step(Ensemble(members)), (one + other) / 2)


def test_members_may_have_different_source_vocabularies(tiny: MakeModel) -> None:
    first = Vocabulary([*SPECIAL_WORDS, "a", "b", "c", "d"])
    second = Vocabulary([*SPECIAL_WORDS, "d", "x", "a", "b"])
    models = [
        LoadedModel(tiny(words=9, seed=6), vocabulary, first, FolderConfig(model=RNNLMConfig()), "0" * 12, "drawn")
        for vocabulary in (first, second)
    ]
    source = models[0].encode_text("a b x c d")
    for loaded, ids in zip(models, ([2, 3, 1, 4, 5], [4, 5, 3, 1, 2]), strict=True):
        memory, _ = ModelPredictor(loaded.model, loaded.encode_text).begin([source])
        with torch.inference_mode():
            expected = loaded.model.encode(pad([ids]))
        _map(_compared, memory, expected)


def _compared(_: bool, mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    torch.testing.assert_close(mine, theirs)
    return mine
