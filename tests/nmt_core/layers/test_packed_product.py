"""Matrices put in order once give the numbers of ordinary products, as they are now, and only where they stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.layers import products as packed_product
from nmt_core.layers.products import SharedMatrix, linear, packed
from nmt_core.native import kernels


@pytest.fixture(autouse=True)
def inference(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not packed_product._library_packs():
        pytest.skip("this processor has no order of its own for bfloat16")
    monkeypatch.setattr(kernels, "load", lambda: None)  # tests/nmt_core/native/test_tiles.py has theirs
    with torch.no_grad():
        yield


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


@pytest.mark.parametrize(("outputs", "inputs"), [(400, 100), (1000, 1000), (999, 333), (17, 1003)])
@pytest.mark.parametrize("rows", [(0,), (1,), (3, 5), (64,), (300,)])
@pytest.mark.parametrize("biased", [False, True])
def test_numbers_are_those_of_the_ordinary_product(
    outputs: int, inputs: int, rows: tuple[int, ...], biased: bool
) -> None:
    weight_OI, bias_O = numbers(outputs, inputs), numbers(outputs, seed=1) if biased else None
    wide = numbers(*rows, 2 * inputs, seed=2)
    assert packed(weight_OI) is not None
    for part in (wide[..., :inputs], wide[..., inputs:].contiguous()):
        exact = part.double() @ weight_OI.double().t() + (0.0 if bias_O is None else bias_O.double())
        found = linear(part, weight_OI, bias_O)
        assert torch.allclose(found.double(), exact, rtol=2.0**-8, atol=1e-3)
        if len(rows) == 1:  # others are rounded a second time there, before the bias is added
            assert torch.equal(found, F.linear(part, weight_OI, bias_O))


def test_it_is_made_once_and_anew_for_a_matrix_that_is_changed() -> None:
    weight_OI, row_I = numbers(200, 100), numbers(1, 100, seed=1)
    assert packed(weight_OI) is packed(weight_OI)
    before = linear(row_I, weight_OI)
    weight_OI.mul_(2.0)
    assert torch.equal(linear(row_I, weight_OI), 2 * before)
    weight_OI.data = numbers(200, 100, seed=2)
    assert torch.equal(linear(row_I, weight_OI), F.linear(row_I, weight_OI))
    assert torch.equal(SharedMatrix(weight_OI)(row_I), F.linear(row_I, weight_OI))


def test_it_goes_with_its_matrix() -> None:
    weight_OI = numbers(200, 100)
    kept = len(packed_product._kept)
    assert packed(weight_OI) is not None and len(packed_product._kept) == kept + 1
    del weight_OI
    gc.collect()
    assert len(packed_product._kept) <= kept


def test_it_is_for_large_matrices_in_bfloat16_that_are_not_trained() -> None:
    assert packed(numbers(200, 100).float()) is None and packed(numbers(20, 10)) is None
    assert packed(numbers(200, 100).requires_grad_()) is None
    with torch.inference_mode():
        assert packed(numbers(200, 100)) is None
    with torch.enable_grad():
        assert packed(numbers(200, 100)) is None
