"""Beam search against enumeration of all translations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nmt_core.batches.padding import Padded, pad
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Hypothesis
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.text.vocabulary import END_ID
from tests.searching import beam_search

MakeModel = Callable[..., TranslationModel]
Enumerate = Callable[..., dict[tuple[int, ...], float]]
WORDS = 5


def search(model: TranslationModel, source: Padded, **settings: Any) -> list[list[Hypothesis]]:
    return beam_search(ModelPredictor(model), source, config=DecodingConfig(**settings), attention=True)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 0.6])
def test_a_wide_beam_finds_what_enumeration_finds(tiny: MakeModel, brute_force: Enumerate, exponent: float) -> None:
    for seed in (1, 2):
        model = tiny(words=WORDS, seed=seed)
        truth = brute_force(model, [2, 3], longest=4, words=WORDS)
        settings = {"beam": 600, "nbest": 600, "max_length_ratio": 0, "max_length_extra": 4}
        found = search(model, pad([[2, 3]]), length_normalization=exponent, **settings)[0]
        assert len(found) == len(truth) == 1 + 4 + 16 + 64 + 256
        assert {hypothesis.words for hypothesis in found} == set(truth)
        for hypothesis in found:
            assert hypothesis.log_prob == pytest.approx(truth[hypothesis.words], abs=1e-9)
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / (len(hypothesis.words) + 1) ** exponent)
        best = max(truth, key=lambda words: truth[words] / (len(words) + 1) ** exponent)
        assert found[0].words == best
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        (first,) = search(model, pad([[2, 3]]), length_normalization=exponent, **{**settings, "nbest": 1})[0]
        assert first.words == best  # stopping early loses nothing


def test_length_normalisation_prefers_the_longer(markov: Callable[..., TranslationModel]) -> None:
    # "": p = 0.3; "a a": p = 0.7 * 0.6 * 0.6 = 0.252, with a better mean.
    table = torch.full((6, 4, 3), -torch.inf)
    table[:, 3] = torch.tensor([0.3, 0.0, 0.7]).log()
    table[:, 2] = torch.tensor([0.4, 0.0, 0.6]).log()
    settings = {"beam": 8, "max_length_ratio": 0, "max_length_extra": 2}
    assert search(markov(table), pad([[2]]), length_normalization=0.0, **settings)[0][0].words == ()
    best = search(markov(table), pad([[2]]), length_normalization=1.0, **settings)[0][0]
    assert best.words == (2, 2)
    # Closed at the longest length with the model's own probability of </s>.
    assert math.exp(best.log_prob) == pytest.approx(0.7 * 0.6 * 0.4)
    assert best.score == pytest.approx(math.log(0.7 * 0.6 * 0.4) / 3)


@pytest.mark.parametrize("words", [7, 70, 300])
def test_equal_scores_are_taken_in_the_order_of_words(
    markov: Callable[..., TranslationModel], sources: Padded, words: int
) -> None:
    uniform = markov(torch.zeros(6, words + 1, words))
    found = search(uniform, sources, beam=3, nbest=3, min_length=1, length_normalization=0.0)
    # All words of a step are equally likely; with two or more places left a step takes words 0 (</s>), 1, 2, ...
    assert len({tuple(h.words for h in hypotheses) for hypotheses in found}) == 1
    assert found[0][0].words == (1,)


def test_a_sentence_that_never_ends_is_closed(markov: Callable[..., TranslationModel]) -> None:
    table = torch.zeros(6, 5, 4)
    table[:, :, END_ID] = -torch.inf
    found = search(markov(table), pad([[2], [2, 3]]), beam=2)
    assert [len(hypotheses[0].words) for hypotheses in found] == [12, 14]
    assert found[0][0].log_prob == -math.inf


def test_attention_belongs_to_its_hypothesis(tiny: MakeModel) -> None:
    model = tiny(words=9, seed=11)
    source = [2, 3, 4, 5]
    for hypothesis in search(model, pad([source, [3]]), beam=6, nbest=6)[0]:
        memory = model.encode(pad([source]))
        state, rows = model.start(memory), []
        for previous in (NO_WORD, *hypothesis.words):
            step = model.step(torch.tensor([previous]), state, memory)
            state = step.state
            if step.attention_NS is not None:
                rows.append(step.attention_NS)
        assert (hypothesis.attention is None) == (not rows)
        if hypothesis.attention is not None:
            np.testing.assert_allclose(hypothesis.attention, torch.cat(rows).numpy(), atol=1e-6)
