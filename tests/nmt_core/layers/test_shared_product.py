"""Products with one tensor at every step: values and gradients are those of plain products, at any precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nmt_core.layers.products import SharedProduct, shared_matrix


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_matrix_in_a_recurrence(steps: int) -> None:
    weight = random(4, 4).requires_grad_()
    start = random(2, 4, seed=1).requires_grad_()
    state, plain = start, start
    product = shared_matrix(weight)
    for _ in range(steps):
        state, plain = torch.tanh(product(state)), torch.tanh(plain @ weight.t())
    torch.testing.assert_close(state, plain)
    expected = torch.autograd.grad(plain.square().sum(), (weight, start))
    torch.testing.assert_close(torch.autograd.grad(state.square().sum(), (weight, start)), expected)


def test_rows_of_sentences_with_several_hypotheses() -> None:
    rows_BSC = random(2, 5, 3).requires_grad_()
    weights = [random(2, hypotheses, 5, seed=hypotheses).requires_grad_() for hypotheses in (1, 4)]
    product = SharedProduct(rows_BSC)
    total = sum((product(weights_BKS).square().sum() for weights_BKS in weights), torch.zeros(()))
    plain = sum((torch.bmm(weights_BKS, rows_BSC).square().sum() for weights_BKS in weights), torch.zeros(()))
    expected = torch.autograd.grad(plain, (rows_BSC, *weights))
    torch.testing.assert_close(torch.autograd.grad(total, (rows_BSC, *weights)), expected)


def test_under_autocast_products_are_in_bfloat16_and_gradients_in_the_parameters_precision() -> None:
    weight = random(4, 3).float().requires_grad_()
    inputs = random(2, 3, seed=1).float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = shared_matrix(weight)(inputs)
    assert product.dtype == torch.bfloat16
    gradients = torch.autograd.grad(product.float().sum(), (weight, inputs))
    assert [gradient.dtype for gradient in gradients] == [torch.float32, torch.float32]
    torch.testing.assert_close(gradients[0], inputs.detach().sum(0).expand(4, 3), rtol=0.02, atol=0.02)
