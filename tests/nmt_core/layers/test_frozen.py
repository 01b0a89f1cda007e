"""Matrices of frozen models are put in order once and give the numbers of ordinary products; nobody replaces them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.layers import products
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.products import FrozenParameter, OrderedMatrix, freeze, linear, shared_matrix
from nmt_core.native import kernels


@pytest.fixture(autouse=True)
def inference(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not products._library_orders():
        pytest.skip("this processor has no order of its own for bfloat16")
    monkeypatch.setattr(kernels, "load", lambda: None)  # tests/nmt_core/native/test_tiles.py has theirs
    with torch.no_grad():
        yield


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def frozen(*shape: int) -> nn.Parameter:
    parameter = nn.Parameter(numbers(*shape))
    freeze(nn.ParameterList([parameter]))
    return parameter


@pytest.mark.parametrize(("outputs", "inputs"), [(400, 100), (1000, 1000), (999, 333), (17, 1003)])
@pytest.mark.parametrize("rows", [(0,), (1,), (3, 5), (64,), (300,)])
@pytest.mark.parametrize("biased", [False, True])
def test_numbers_are_those_of_the_ordinary_product(
    outputs: int, inputs: int, rows: tuple[int, ...], biased: bool
) -> None:
    weight_OI, bias_O = frozen(outputs, inputs), numbers(outputs, seed=1) if biased else None
    wide = numbers(*rows, 2 * inputs, seed=2)
    assert isinstance(weight_OI, OrderedMatrix)
    for part in (wide[..., :inputs], wide[..., inputs:].contiguous()):
        exact = part.double() @ weight_OI.double().t() + (0.0 if bias_O is None else bias_O.double())
        found = linear(part, weight_OI, bias_O)
        assert torch.allclose(found.double(), exact, rtol=2.0**-8, atol=1e-3)
        if len(rows) == 1:  # others are rounded a second time there, before the bias is added
            assert torch.equal(found, F.linear(part, weight_OI, bias_O))


def test_a_matrix_is_put_in_order_once() -> None:
    weight_OI, row_I = frozen(200, 100), numbers(1, 100, seed=1)
    expected = F.linear(row_I, weight_OI)
    assert torch.equal(linear(row_I, weight_OI), expected) and isinstance(weight_OI, OrderedMatrix)
    kept = weight_OI.reordered
    assert torch.equal(shared_matrix(weight_OI)(row_I), expected) and weight_OI.reordered is kept


def test_it_is_for_large_matrices_in_bfloat16_where_no_gradient_is_taken() -> None:
    single = nn.Linear(200, 100)
    freeze(single)
    assert isinstance(single.weight, FrozenParameter) and not isinstance(single.weight, OrderedMatrix)
    assert isinstance(frozen(200, 100), OrderedMatrix) and not isinstance(frozen(20, 10), OrderedMatrix)
    with torch.enable_grad():
        row_I = numbers(1, 100).requires_grad_()
        linear(row_I, frozen(200, 100)).sum().backward()
        assert row_I.grad is not None


def test_a_shortlist_of_a_frozen_generator_is_frozen() -> None:
    output = LinearGenerator(100, 400).bfloat16()
    freeze(output)
    some = output.restricted_to(torch.arange(0, 400, 2))
    assert isinstance(some.weight, OrderedMatrix) and some.normalizer() is some.normalizer()


def test_parameters_that_are_tied_stay_tied_and_none_is_replaced() -> None:
    embedding = WordEmbedding(400, 100)
    output = LinearGenerator(100, 400, tied=embedding)
    model = nn.ModuleList([embedding, output, nn.Dropout(0.5)])
    freeze(model)
    assert output.weight is embedding.weight and not model.training
    assert all(isinstance(one, FrozenParameter) and not one.requires_grad for one in model.parameters())
    for layer, name in ((output, "bias"), (embedding, "weight")):
        with pytest.raises(RuntimeError, match=f"{name} is frozen: change parameters before the model is in use"):
            setattr(layer, name, nn.Parameter(torch.zeros_like(getattr(layer, name))))
