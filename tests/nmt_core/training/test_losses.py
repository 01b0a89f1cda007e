"""The loss of a model: named sums, the same gradient whatever the slices, and goals of a model's own."""

from __future__ import annotations

import math

import pytest
import torch

from nmt_core.batches.padding import Batch, pad_pairs
from nmt_core.layers import losses as word_loss
from nmt_core.layers.losses import Losses, LossOptions, LossSum
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.training.gradient import backpropagate

SIZES = {"embedding": 4, "hidden": 5, "alignment": 3, "maxout": 3, "initialisation": "glorot"}
BATCH = pad_pairs([([2, 3], [4, 5, 6]), ([7], [2])])


def model(**settings: object) -> RNNsearch:
    made = new_model(RNNsearchConfig(**SIZES, **settings), 9, 8, seed=1).requires_grad_(True)
    assert isinstance(made, RNNsearch)
    return made


def test_sums_are_named_and_counted() -> None:
    plain = model().loss(BATCH, LossOptions())
    assert plain.sums.keys() == {"words"}
    assert plain.sums["words"].count == 6
    assert [LossSum(torch.tensor(3.0), count).mean for count in (0, 1, 2)] == [3.0, 3.0, 1.5]
    assert plain.sums["words"].total.item() == pytest.approx(-model()(BATCH).sum().item(), rel=1e-6)
    both = model().loss(BATCH, LossOptions(self_normalization=0.5))
    assert both.sums["words"].total.item() == pytest.approx(plain.sums["words"].total.item(), rel=1e-6)
    whole = both.sums["words"].total + both.sums["self-normalisation"].total
    assert both.objective.item() == pytest.approx(whole.item(), rel=1e-6)
    assert both.objective.requires_grad
    assert not whole.requires_grad


@pytest.mark.parametrize(
    ("smoothing", "penalty", "tied"), [(0.0, 0.0, False), (0.1, 0.0, True), (0.0, 0.3, False), (0.1, 0.2, True)]
)
def test_backpropagation_in_slices_is_that_of_torchs_cross_entropy(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, penalty: float, tied: bool
) -> None:
    monkeypatch.setattr(word_loss, "LOGITS_OF_A_PRODUCT", 9)
    options = LossOptions(label_smoothing=smoothing, self_normalization=penalty)
    one, other = model(tied=tied).double(), model(tied=tied).double()
    losses = backpropagate(one, BATCH, options, scale=0.3)
    mask = BATCH.target.mask_BL
    logits = other.generator.logits(other.known_targets(BATCH).readouts_BTL[mask])
    words = BATCH.target.words_BL[mask]
    expected = torch.nn.functional.cross_entropy(logits, words, reduction="sum", label_smoothing=smoothing)
    expected = expected + penalty * torch.logsumexp(logits, dim=1).square().sum()
    (0.3 * expected).backward()
    assert losses.objective.item() == pytest.approx(expected.item(), rel=1e-6)
    for name, parameter in one.named_parameters():
        torch.testing.assert_close(parameter.grad, other.get_parameter(name).grad, rtol=1e-5, atol=1e-7)


def test_a_frozen_generator_gets_no_gradient_and_what_is_below_it_does() -> None:
    frozen, free = model(), model()
    frozen.generator.requires_grad_(False)
    for each in (frozen, free):
        backpropagate(each, BATCH)
    assert all(parameter.grad is None for parameter in frozen.generator.parameters())
    assert frozen.attention.energy.grad is not None
    torch.testing.assert_close(frozen.attention.energy.grad, free.attention.energy.grad)


class Restless(RNNsearch):
    """Has a goal of its own: a small first state."""

    def loss(self, batch: Batch, options: LossOptions) -> Losses:
        losses = super().loss(batch, options)
        size = self.initial.bias.square().sum()
        parts = {**losses.sums, "restlessness": LossSum(size.detach(), batch.target.rows)}
        return Losses(losses.objective + 3.0 * size, parts)


def test_a_goal_of_a_models_own_is_trained_and_reported(
    runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nmt_core.commands.main import main
    from nmt_core.models import build
    from nmt_core.training import report

    monkeypatch.setattr(build, "RNNsearch", Restless)
    monkeypatch.setattr(report.Reporter.__init__, "__kwdefaults__", {"interval": 0.0, "quiet": False})
    runs.write("run", max_updates=8, label_smoothing=0.0)
    assert main(["train", runs.file("run.yaml"), "--device", "cpu"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("update ") and "norm" in line]
    assert len(lines) == 8
    assert all(" nats/word  " in line and " restlessness  " in line for line in lines)
    assert math.isfinite(float(lines[-1].split(" restlessness")[0].split()[-1]))
    assert runs.model("run")
