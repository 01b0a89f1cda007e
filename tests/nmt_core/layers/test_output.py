"""The normaliser that never holds all logits gives what log-softmax gives."""

from __future__ import annotations

import pytest
import torch

from nmt_core.layers.output import OutputLayer


def layer(words: int, *, rank: int | None = None, scale: float = 1.0) -> OutputLayer:
    torch.manual_seed(5)
    output = OutputLayer(8, words, rank=rank)
    for parameter in output.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return output


@pytest.mark.parametrize("words", [3, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("rank", [None, 4, 12])
def test_the_normaliser_is_the_log_of_the_sum_over_all_words(words: int, rank: int | None) -> None:
    output, readout = layer(words, rank=rank).requires_grad_(False), torch.randn(2100, 8)
    expected = torch.logsumexp(output(readout).double(), dim=1)
    assert torch.allclose(output.normalizer()(readout).double(), expected, atol=1e-5)


def test_logits_that_would_overflow_are_normalised_all_the_same() -> None:
    output, readout = layer(1500, scale=1.0).requires_grad_(False), torch.randn(5, 8)
    output.bias[1200] = 400.0
    output.bias[:1000] = -400.0
    expected = torch.logsumexp(output(readout).double(), dim=1)
    assert torch.allclose(output.normalizer()(readout).double(), expected, rtol=1e-6)


def test_single_logits_are_those_of_all() -> None:
    output, readout = layer(50, rank=4).requires_grad_(False), torch.randn(6, 8)
    rows, words = torch.tensor([0, 0, 5, 3]), torch.tensor([1, 49, 0, 7])
    assert torch.allclose(output.at(readout, rows, words), output(readout)[rows, words], atol=1e-6)


def test_all_words_as_candidates_are_the_full_normaliser() -> None:
    output, readout = layer(300).requires_grad_(False), torch.randn(6, 8)
    assert torch.allclose(output.normalizer(torch.arange(300))(readout), output.normalizer()(readout), atol=1e-6)


def test_a_row_that_is_not_a_number_stays_so() -> None:
    output = layer(30).requires_grad_(False)
    readout = torch.tensor([[float("nan")] * 8, [0.5] * 8])
    found = output.normalizer()(readout)
    assert found[0].isnan()
    assert found[1].isfinite()
