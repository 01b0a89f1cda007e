"""Minimum risk training against risks computed by enumeration, and by torch's own differentiation."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch

from nmt_core.batches.padding import pad_pairs
from nmt_core.models.build import new_model
from nmt_core.models.interface import TranslationModel
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import END_ID
from nmt_core.training.config import MinimumRiskConfig
from nmt_core.training.gradient import backpropagate_risk, draw_candidates, risk_weights, sentence_bleu

REFERENCE = (2, 3, 2)
SOURCES = [[2, 3], [3]]
BATCH = pad_pairs(list(zip(SOURCES, [list(REFERENCE), [3]], strict=True)))


def tiny(*, ending: float = 0.0) -> TranslationModel:
    """Four target words: the end, the unknown word and two others; ``ending`` makes translations short."""
    config = RNNsearchConfig(embedding=3, hidden=4, alignment=3, maxout=3, dropout=0.3, initialisation="glorot")
    model = new_model(config, 4, 4, seed=2).double().requires_grad_(True)
    with torch.no_grad():
        model.generator.get_parameter("bias")[END_ID] += ending
    return model


def log_probs(model: TranslationModel, source: list[int], targets: list[tuple[int, ...]]) -> torch.Tensor:
    return torch.stack([model(pad_pairs([(source, list(target))])).sum() for target in targets])


def every_target(longest: int) -> list[tuple[int, ...]]:
    return [target for length in range(longest + 1) for target in itertools.product((1, 2, 3), repeat=length)]


@pytest.mark.parametrize("sharpness", [0.005, 1.0])
def test_the_weights_give_the_gradient_of_the_enumerated_risk(sharpness: float) -> None:
    targets = every_target(3)
    errors = torch.tensor([1 - sentence_bleu(target, REFERENCE) for target in targets], dtype=torch.float64)
    one, other = tiny().eval(), tiny().eval()
    enumerated = (torch.softmax(sharpness * log_probs(one, [2, 3], targets), dim=0) * errors).sum()
    enumerated.backward()
    found = log_probs(other, [2, 3], targets)
    risk, weights = risk_weights(found.detach(), errors, sharpness=sharpness)
    (weights * found).sum().backward()
    assert risk.item() == pytest.approx(enumerated.item(), rel=1e-12)
    for name, parameter in one.named_parameters():
        torch.testing.assert_close(other.get_parameter(name).grad, parameter.grad, rtol=1e-9, atol=1e-14)


def test_an_update_is_the_gradient_of_the_risk_over_its_candidates() -> None:
    config = MinimumRiskConfig(samples=7, sharpness=0.3)
    one, other = tiny().train(), tiny().train()
    losses = backpropagate_risk(one, BATCH, config, seed=5, number=9, scale=0.5)
    total = torch.zeros((), dtype=torch.float64)
    for source, space in zip(SOURCES, draw_candidates(other.eval(), BATCH, config, seed=5, number=9), strict=True):
        assert space.targets[0] in (REFERENCE, (3,))
        assert len(set(space.targets)) == len(space.targets)
        found = log_probs(other, source, list(space.targets))
        total = total + (torch.softmax(0.3 * found, dim=0) * space.errors).sum()
    (0.5 * total).backward()
    assert losses.objective.item() == pytest.approx(total.item(), rel=1e-6)
    assert losses.sums["risk"].count == 2
    for name, parameter in one.named_parameters():
        torch.testing.assert_close(parameter.grad, other.get_parameter(name).grad, rtol=1e-4, atol=1e-9)


def test_with_many_samples_the_risk_is_the_expected_error() -> None:
    model = tiny(ending=2.0).eval()
    targets = every_target(6)
    chances = log_probs(model, [2, 3], targets).exp()
    errors = torch.tensor([1 - sentence_bleu(target, REFERENCE) for target in targets], dtype=torch.float64)
    assert chances.sum() > 0.999
    expected = (chances * errors).sum().item()
    batch = pad_pairs([([2, 3], list(REFERENCE))])
    config = MinimumRiskConfig(samples=4000, sharpness=1.0)
    risk = backpropagate_risk(model, batch, config, seed=1, number=0).objective.item()
    assert risk == pytest.approx(expected, abs=0.005)


def test_samples_follow_the_model_and_the_seed() -> None:
    model = tiny(ending=1.0).eval()
    config = MinimumRiskConfig(samples=50)
    first, again, other = (draw_candidates(model, BATCH, config, seed=1, number=number) for number in (3, 3, 4))
    assert [space.targets for space in first] == [space.targets for space in again]
    assert [space.targets for space in first] != [space.targets for space in other]


def test_sentence_bleu_is_lin_and_ochs() -> None:
    words, reference = (5, 6, 7, 8, 9, 5), (5, 6, 7, 9, 8)
    precisions = []
    for n in range(1, 5):
        have = Counter(words[place : place + n] for place in range(len(words) - n + 1))
        want = Counter(reference[place : place + n] for place in range(len(reference) - n + 1))
        smoothing = int(n > 1)
        precisions.append(((have & want).total() + smoothing) / (have.total() + smoothing))
    expected = math.exp(sum(map(math.log, precisions)) / 4)  # it is longer than the reference
    assert sentence_bleu(words, reference) == pytest.approx(expected, rel=1e-9)
    assert sentence_bleu(reference, reference) == pytest.approx(1.0)
    assert sentence_bleu((), reference) == 0.0


def test_it_resumes_exactly(runs) -> None:
    runs.assert_resumes_exactly(minimum_risk={"samples": 5}, updates=9, validate_every=4, update_every=2)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"label_smoothing": 0.1}, [], "label_smoothing is about likelihood"),
        ({"partition_words": 24}, [], "partition_words is about likelihood"),
        (
            {"minimum_risk": {"sharpnes": 1}},
            [],
            "unknown key 'training.minimum_risk.sharpnes'; did you mean 'sharpness'?",
        ),
        ({"select_by": "nll"}, ["model={type: rnnlm, hidden: 4}"], "a language model makes none"),
    ],
)
def test_what_does_not_go_with_it_is_one_line(
    runs, settings: dict[str, object], options: list[str], message: str
) -> None:
    runs.write("run", **{"minimum_risk": {"samples": 3}, **settings})
    assert message in runs.refused("run", *options)
