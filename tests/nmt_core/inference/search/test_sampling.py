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

from nmt_core.batches.padding import pad, pad_pairs
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Hypothesis
from nmt_core.inference.search.sampling import sample
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

MakeModel = Callable[..., TranslationModel]
Enumerate = Callable[..., dict[tuple[int, ...], float]]
SOURCES = [[2, 3, 4], [5], [], [4, 4, 2, 3, 5, 2], [3, 1], [2]]


def draw(
    model: TranslationModel, *sources: list[int], numbers: list[int] | None = None, **settings: Any
) -> list[list[Hypothesis]]:
    """Samples of each source, with their attention."""
    predictor = ModelPredictor(model)
    started, lengths = predictor.begin([Sentence(source) for source in sources]), [len(one) for one in sources]
    numbers = numbers or list(range(len(lengths)))
    return sample(predictor, started, lengths, config=SamplingConfig(**settings), numbers=numbers, attention=True)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_frequencies_are_the_probabilities(tiny: MakeModel, brute_force: Enumerate, temperature: float) -> None:
    model = tiny(words=4, seed=1)
    truth = brute_force(model, [2, 3], longest=1, words=4)
    (drawn,) = draw(model, [2, 3], samples=4000, temperature=temperature, max_length_ratio=0, max_length_extra=1)
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


def test_samples_do_not_depend_on_the_batch(tiny: MakeModel) -> None:
    model = tiny(words=20, seed=2)
    together = draw(model, *SOURCES, samples=3, seed=7)
    for row, source in enumerate(SOURCES):
        (alone,) = draw(model, source, samples=3, seed=7, numbers=[row])
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
    together = draw(model, [2, 3], [4], samples=50, seed=7)
    assert max(rows) == 100
    monkeypatch.setattr("nmt_core.inference.search.sampling._MAX_ROWS", 30)
    rows.clear()
    parts = draw(model, [2, 3], [4], samples=50, seed=7)
    assert max(rows) == 30
    assert [[one.words for one in drawn] for drawn in parts] == [[one.words for one in drawn] for drawn in together]
    for mine, theirs in zip((one for drawn in parts for one in drawn), itertools.chain(*together), strict=True):
        assert mine.log_prob == pytest.approx(theirs.log_prob, abs=1e-12)


def test_seeds_and_lines_differ(tiny: MakeModel) -> None:
    model, source = tiny(words=20, seed=3), [2, 3, 4]
    first = draw(model, source, source, samples=8, seed=1)
    assert first == draw(model, source, source, samples=8, seed=1)
    assert first != draw(model, source, source, samples=8, seed=2)
    assert first[0] != first[1]


def test_log_probabilities_and_attention_are_those_of_the_model(tiny: MakeModel) -> None:
    model = tiny(words=8, seed=4)
    for source, drawn in zip(SOURCES, draw(model, *SOURCES, samples=4, temperature=2.0), strict=True):
        expected = model(pad_pairs([(source, h.words) for h in drawn])).sum(dim=1)
        np.testing.assert_allclose([h.log_prob for h in drawn], expected, atol=1e-9)
        for hypothesis in drawn:
            if hypothesis.attention is not None:
                assert hypothesis.attention.shape == (len(hypothesis.words) + 1, len(source) + 1)


@pytest.mark.parametrize(
    ("forbidden", "options"), [(END_ID, {"min_length": 4}), (UNKNOWN_ID, {"forbid_unknown": True})]
)
def test_among_what_is_allowed_the_likeliest_is_drawn_at_low_temperatures(
    tiny: MakeModel, forbidden: int, options: dict[str, Any]
) -> None:
    model = tiny(words=20, seed=4)
    with torch.no_grad():
        model.generator.bias[forbidden] = 30.0  # beside it, nothing else is left of p ** 100
    log_probs_V = model.generator.log_probs(next_readout(model, [2, 3]))[0].clone()
    log_probs_V[forbidden] = -math.inf
    (drawn,) = draw(model, [2, 3], samples=2, temperature=0.01, max_length_ratio=0, max_length_extra=4, **options)
    for hypothesis in drawn:
        assert hypothesis.words[0] == int(log_probs_V.argmax())
        assert forbidden not in hypothesis.words and len(hypothesis.words) >= options.get("min_length", 0)


def next_readout(model: TranslationModel, source: list[int]) -> torch.Tensor:
    """What the generator reads before the first word."""
    with torch.no_grad():
        memory = model.encode(pad([source]))
        return model.step(torch.tensor([NO_WORD]), model.start(memory), memory).readout_NL
