"""The normaliser in tiles against float64, for any sizes; each row alone is the row in company."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nmt_core.layers.normalizer import BlockNormalizer
from nmt_core.native import kernels
from nmt_core.native.library import VERSION, Library
from nmt_core.native.tiles import TiledWords


@pytest.fixture(autouse=True)
def with_tiles(library: Library) -> Iterator[None]:
    if not library.has_tiles:
        pytest.skip("this processor has no tiles, or the system does not let them be used")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


def exactly(inputs_ND: Tensor, weight_VD: Tensor, bias_V: Tensor) -> Tensor:
    return torch.logsumexp(inputs_ND.double() @ weight_VD.double().t() + bias_V.double(), dim=1)


def as_it_is(inputs_ND: Tensor) -> Tensor:
    return inputs_ND


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 70), words=st.integers(1, 1200), columns=st.integers(1, 140), scale=st.floats(0.01, 1.0))
def test_it_is_the_log_of_the_sum_of_the_exponentials(rows: int, words: int, columns: int, scale: float) -> None:
    inputs_ND, weight_VD, bias_V = numbers(rows, columns), numbers(words, columns, seed=1, scale=scale), numbers(words)
    found_N = TiledWords(weight_VD, bias_V).log_sum_exp(inputs_ND)
    assert torch.allclose(found_N.double(), exactly(inputs_ND, weight_VD, bias_V), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("columns", [500, 620, 1000])
def test_a_row_is_the_same_whatever_is_beside_it(columns: int) -> None:
    inputs_ND, weight_VD, bias_V = numbers(75, columns), numbers(3000, columns, seed=1, scale=0.1), numbers(3000)
    words = TiledWords(weight_VD, bias_V)
    together_N = words.log_sum_exp(inputs_ND)
    for first, last in ((0, 1), (74, 75), (3, 40), (31, 33)):
        assert torch.equal(words.log_sum_exp(inputs_ND[first:last]), together_N[first:last])
    assert torch.equal(words.log_sum_exp(inputs_ND.flip(0)), together_N.flip(0))


def test_it_is_nearer_to_the_exact_number_than_without(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs_ND, weight_VD, bias_V = numbers(64, 500), numbers(5000, 500, seed=1, scale=0.1), numbers(5000)
    normalizer, exact_N = BlockNormalizer(as_it_is, weight_VD, bias_V), exactly(inputs_ND, weight_VD, bias_V)

    def error() -> float:
        return float((normalizer(inputs_ND).double() - exact_N).abs().mean())

    with_them = error()
    monkeypatch.setattr(library, "has_tiles", False)
    assert with_them < 1e-5 < 1e-4 < error()


def test_rows_out_of_range_are_computed_all_the_same() -> None:
    inputs_ND, weight_VD, bias_V = numbers(4, 40), numbers(500, 40, seed=1), numbers(500)
    bias_V[400], bias_V[7] = 300.0, -torch.inf
    inputs_ND[2, 5] = torch.nan
    found_N = BlockNormalizer(as_it_is, weight_VD, bias_V)(inputs_ND)
    assert found_N.isnan().tolist() == [False, False, True, False]
    some = torch.tensor([0, 1, 3])
    exact_N = exactly(inputs_ND[some], weight_VD, bias_V)
    assert torch.allclose(found_N[some].double(), exact_N, rtol=2.0**-8)


def test_words_that_cannot_come_add_nothing() -> None:
    inputs_ND, weight_VD, bias_V = numbers(40, 64), numbers(500, 64, seed=1, scale=0.1), numbers(500)
    bias_V[100:300] = -torch.inf
    possible = torch.isfinite(bias_V)
    found_N = TiledWords(weight_VD, bias_V).log_sum_exp(inputs_ND)
    assert torch.allclose(found_N.double(), exactly(inputs_ND, weight_VD[possible], bias_V[possible]), atol=2e-6)


def test_other_inputs_are_refused() -> None:
    words = TiledWords(numbers(50, 40), numbers(50))
    for wrong in (numbers(3, 41), numbers(3, 40).float(), torch.empty(3, 40, dtype=torch.bfloat16, device="meta")):
        with pytest.raises(ValueError, match="expected \\(rows, 40\\)"):
            words.log_sum_exp(wrong)


def test_signatures_tell_numbers_of_tiles_from_others(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {kernels.name_kernels(numbers(1))}
    monkeypatch.setattr(library, "has_tiles", False)
    assert not kernels.tiles_apply_to(numbers(1, 2), numbers(3, 2))
    assert names == {f"|kernels:{VERSION + 1}"} and kernels.name_kernels(numbers(1)) == f"|kernels:{VERSION}"
