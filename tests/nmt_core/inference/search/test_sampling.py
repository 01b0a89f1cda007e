"""Samples against the probabilities they are drawn from."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt_core.batches.padding import Padded, pad, pad_pairs
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.sampling import sample
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

MakeModel = Callable[..., TranslationModel]
Enumerate = Callable[..., dict[tuple[int, ...], float]]


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_frequencies_are_the_probabilities(tiny: MakeModel, brute_force: Enumerate, temperature: float) -> None:
    model = tiny(words=4, seed=1)
    truth = brute_force(model, [2, 3], longest=1, words=4)
    config = SamplingConfig(samples=4000, temperature=temperature, max_length_ratio=0, max_length_extra=1)
    drawn = sample(ModelPredictor(model), pad([[2, 3]]), [2], config=config)[0]
    counts = collections.Counter(h.words for h in drawn)
    # Of one word at most: the empty one, or the first word whatever follows, as it is closed then.
    first = model(pad_pairs([([2, 3], [word]) for word in (1, 2, 3)]))[:, 0].tolist()
    weights: dict[tuple[int, ...], float] = {(): math.exp(truth[()] / temperature)}
    weights |= {(word,): math.exp(value / temperature) for word, value in zip((1, 2, 3), first, strict=True)}
    for words, weight in weights.items():
        expected = weight / sum(weights.values())
        deviation = math.sqrt(expected * (1 - expected) / 4000)
        assert counts[words] / 4000 == pytest.approx(expected, abs=4 * deviation + 1e-9)
    for hypothesis in drawn[:50]:
        assert hypothesis.log_prob == pytest.approx(truth[hypothesis.words], abs=1e-9)


def test_samples_do_not_depend_on_the_batch(tiny: MakeModel, sources: Padded) -> None:
    predictor = ModelPredictor(tiny(words=20, seed=2))
    config = SamplingConfig(samples=3, seed=7)
    together = sample(predictor, sources, sources.lengths, config=config)
    for row in range(sources.rows):
        length = int(sources.mask_BL[row].sum())
        one = Padded(sources.words_BL[[row], :length], sources.mask_BL[[row], :length])
        alone = sample(predictor, one, one.lengths, config=config, numbers=[row])[0]
        assert [h.words for h in alone] == [h.words for h in together[row]]


def test_many_samples_are_drawn_some_at_a_time_and_are_the_same(
    tiny: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(words=20, seed=2)
    rows, step = list[int](), model.step

    def watched(previous_N: Tensor, *rest: Any) -> Any:
        rows.append(len(previous_N))
        return step(previous_N, *rest)

    monkeypatch.setattr(model, "step", watched)
    source, config = pad([[2, 3], [4]]), SamplingConfig(samples=50, seed=7)
    together = sample(ModelPredictor(model), source, source.lengths, config=config, attention=True)
    assert max(rows) == 100
    monkeypatch.setattr("nmt_core.inference.search.sampling._MAX_ROWS", 30)
    rows.clear()
    parts = sample(ModelPredictor(model), source, source.lengths, config=config, attention=True)
    assert max(rows) == 30
    assert [[one.words for one in drawn] for drawn in parts] == [[one.words for one in drawn] for drawn in together]
    for mine, theirs in zip((one for drawn in parts for one in drawn), itertools.chain(*together), strict=True):
        assert mine.log_prob == pytest.approx(theirs.log_prob, abs=1e-12)


def test_seeds_and_lines_differ(tiny: MakeModel) -> None:
    predictor = ModelPredictor(tiny(words=20, seed=3))
    source = pad([[2, 3, 4], [2, 3, 4]])
    first = sample(predictor, source, source.lengths, config=SamplingConfig(samples=8, seed=1))
    assert first == sample(predictor, source, source.lengths, config=SamplingConfig(samples=8, seed=1))
    assert first != sample(predictor, source, source.lengths, config=SamplingConfig(samples=8, seed=2))
    assert first[0] != first[1]


def test_log_probabilities_and_attention_are_those_of_the_model(tiny: MakeModel, sources: Padded) -> None:
    model = tiny(words=8, seed=4)
    config = SamplingConfig(samples=4, temperature=2.0)
    for row, drawn in enumerate(sample(ModelPredictor(model), sources, sources.lengths, config=config, attention=True)):
        source = sources.words_BL[row][sources.mask_BL[row]][:-1].tolist()
        expected = model(pad_pairs([(source, h.words) for h in drawn])).sum(dim=1)
        np.testing.assert_allclose([h.log_prob for h in drawn], expected, atol=1e-9)
        for hypothesis in drawn:
            if hypothesis.attention is not None:
                assert hypothesis.attention.shape == (len(hypothesis.words) + 1, len(source) + 1)


def test_unknown_words_are_forbidden_on_demand(tiny: MakeModel, sources: Padded) -> None:
    predictor = ModelPredictor(tiny(words=4, seed=5))
    free = sample(predictor, sources, sources.lengths, config=SamplingConfig(samples=20))
    bound = sample(predictor, sources, sources.lengths, config=SamplingConfig(samples=20, forbid_unknown=True))
    assert any(UNKNOWN_ID in h.words for drawn in free for h in drawn)
    assert not any(UNKNOWN_ID in h.words for drawn in bound for h in drawn)


def test_only_the_likeliest_words_are_drawn(tiny: MakeModel) -> None:
    model = tiny(words=20, seed=6)
    first = model(pad_pairs([([2, 3], [word]) for word in range(1, 20)]))[:, 0]
    likeliest = {int(word) + 1 for word in first.topk(3).indices}
    config = SamplingConfig(samples=200, top_k=3, temperature=3.0)
    drawn = sample(ModelPredictor(model), pad([[2, 3]]), [2], config=config)[0]
    assert {h.words[0] for h in drawn if h.words} <= likeliest
    greedy = sample(ModelPredictor(model), pad([[2, 3]]), [2], config=SamplingConfig(samples=3, top_k=1))[0]
    assert len({found.words for found in greedy}) == 1  # numbers of rows of a batch may differ by rounding


def test_samples_keep_the_least_length(tiny: MakeModel, sources: Padded) -> None:
    drawn = sample(
        ModelPredictor(tiny(words=4, seed=7)), sources, sources.lengths, config=SamplingConfig(samples=9, min_length=6)
    )
    assert all(len(h.words) >= 6 for hypotheses in drawn for h in hypotheses)


@pytest.mark.parametrize(
    ("forbidden", "options"), [(END_ID, {"min_length": 4}), (UNKNOWN_ID, {"forbid_unknown": True})]
)
def test_among_what_is_allowed_the_likeliest_is_drawn_at_low_temperatures(
    tiny: MakeModel, forbidden: int, options: dict[str, Any]
) -> None:
    model = tiny(words=20, seed=4)
    with torch.no_grad():
        model.generator.bias[forbidden] = 30.0  # beside it, nothing else is left of p ** 100
    config = SamplingConfig(samples=2, temperature=0.01, max_length_ratio=0, max_length_extra=4, **options)
    log_probs_V = model.log_probs(next_readout(model, [2, 3]))[0].clone()
    log_probs_V[forbidden] = -math.inf
    for hypothesis in sample(ModelPredictor(model), pad([[2, 3]]), [2], config=config)[0]:
        assert hypothesis.words[0] == int(log_probs_V.argmax())


def next_readout(model: TranslationModel, source: list[int]) -> torch.Tensor:
    """What the generator reads before the first word."""
    with torch.no_grad():
        memory = model.encode(pad([source]))
        return model.step(torch.tensor([NO_WORD]), model.start(memory), memory).readout_NL
