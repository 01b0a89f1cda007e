"""Products and normaliser in tiles against float64, for any sizes; each row alone is the row in company."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.normalizer import BlockNormalizer
from nmt_core.layers.products import OrderedMatrix, freeze, linear
from nmt_core.native import kernels
from nmt_core.native.library import Library
from nmt_core.native.tiles import TiledMatrix, TiledWords


@pytest.fixture(autouse=True)
def library(library_with_tiles: Library, one_thread: None) -> Library:
    return library_with_tiles


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


def exactly(inputs_ND: Tensor, weight_VD: Tensor, bias_V: Tensor) -> Tensor:
    return torch.logsumexp(inputs_ND.double() @ weight_VD.double().t() + bias_V.double(), dim=1)


def log_sum_exp(words: TiledWords, inputs_ND: Tensor) -> Tensor:
    none = torch.empty(0, dtype=torch.int64)
    shift_N, total_N, _ = words.sums(inputs_ND, none, none)
    return total_N.log().add(shift_N)


def as_it_is(inputs_ND: Tensor) -> Tensor:
    return inputs_ND


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(0, 70), words=st.integers(1, 1200), columns=st.integers(1, 140), scale=st.floats(0.01, 1.0))
def test_it_is_the_log_of_the_sum_of_the_exponentials(rows: int, words: int, columns: int, scale: float) -> None:
    inputs_ND, weight_VD, bias_V = numbers(rows, columns), numbers(words, columns, seed=1, scale=scale), numbers(words)
    found_N = log_sum_exp(TiledWords(weight_VD, bias_V), inputs_ND)
    assert torch.allclose(found_N.double(), exactly(inputs_ND, weight_VD, bias_V), rtol=2e-6, atol=2e-6)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(0, 70),
    words=st.integers(1, 1200),
    columns=st.integers(1, 140),
    scale=st.floats(0.01, 1.0),
    block=st.sampled_from([32, 128, 256]),
)
def test_scores_are_those_of_the_product_with_their_largest_and_their_sum(
    rows: int, words: int, columns: int, scale: float, block: int
) -> None:
    inputs_ND, weight_VD, bias_V = numbers(rows, columns), numbers(words, columns, seed=1, scale=scale), numbers(words)
    scores_NV = torch.full((rows, words), torch.nan, dtype=torch.bfloat16)
    tops_NG, normalizer_N = TiledWords(weight_VD, bias_V).scores_into(scores_NV, inputs_ND, block)
    assert torch.equal(scores_NV, TiledMatrix(weight_VD)(inputs_ND, bias_V))
    assert torch.equal(tops_NG, torch.stack([part.amax(dim=1) for part in scores_NV.split(block, dim=1)], dim=1))
    assert torch.allclose(normalizer_N.double(), scores_NV.double().logsumexp(dim=1), rtol=1e-6, atol=1e-6)


def test_scores_of_a_row_are_the_same_whatever_is_beside_it() -> None:
    """Also where one of the rows has to be done again."""
    inputs_ND, weight_VD, bias_V = numbers(75, 500), numbers(3000, 500, seed=1, scale=0.1), numbers(3000)
    bias_V[2000] = -torch.inf
    normalizer = BlockNormalizer(as_it_is, weight_VD, bias_V)

    def scored(inputs_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores_NV = inputs_ND.new_empty(len(inputs_ND), 3000)
        return scores_NV, *normalizer.scores_into(scores_NV, inputs_ND, 128)

    together = scored(inputs_ND)
    for first, last in ((0, 1), (74, 75), (3, 40), (31, 33)):
        alone = scored(inputs_ND[first:last])
        assert all(torch.equal(one, all_of[first:last]) for one, all_of in zip(alone, together, strict=True))
    inputs_ND[40] *= 50.0
    inputs_ND[41, 3] = torch.nan
    others = torch.tensor([row not in (40, 41) for row in range(75)])
    scores_NV, tops_NG, normalizer_N = scored(inputs_ND)
    for one, all_of in zip((scores_NV, tops_NG, normalizer_N), together, strict=True):
        assert torch.equal(one[others], all_of[others])
    assert torch.allclose(normalizer_N[40].double(), scores_NV[40].double().logsumexp(dim=0), rtol=1e-6)
    assert torch.equal(tops_NG[40], torch.stack([part.amax() for part in scores_NV[40].split(128)]))
    assert bool(normalizer_N[41].isnan()) and bool(tops_NG[41].isnan().all())


def test_no_word_is_likelier_than_1_where_one_is_far_above_the_others() -> None:
    """The normaliser is the sum of a negative shift and a rounded number of more digits before the point."""
    inputs_ND, weight_VD, bias_V = numbers(300, 40), numbers(1200, 40, seed=1, scale=0.1), numbers(1200) - 8.0
    bias_V[1100] = 62.0
    scores_NV = inputs_ND.new_empty(300, 1200)
    tops_NG, normalizer_N = BlockNormalizer(as_it_is, weight_VD, bias_V).scores_into(scores_NV, inputs_ND, 128)
    assert bool((normalizer_N >= tops_NG.amax(dim=1).float()).all())


def test_search_asks_for_scores_of_weights_in_use_alone(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only frozen weights are put in order: in training they change at every update."""
    with torch.inference_mode(mode=False):
        generator = LinearGenerator(40, 500).bfloat16()
        for parameter in generator.parameters():
            torch.nn.init.normal_(parameter)
    readout_NL, room_NV = numbers(3, 40), numbers(3, 500)
    assert generator.scores_into(room_NV, readout_NL, 128) is None
    freeze(generator)
    found = generator.scores_into(room_NV, readout_NL, 128)
    assert found is not None and torch.equal(room_NV, generator.logits(readout_NL))
    assert torch.allclose(found[1], room_NV.float().logsumexp(dim=1), rtol=1e-6)
    monkeypatch.setattr(library, "has_tiles", False)
    assert generator.scores_into(room_NV, readout_NL, 128) is None


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(0, 70),
    outputs=st.integers(1, 200),
    inputs=st.sampled_from([1, 2, 31, 32, 33, 500, 511, 513, 620, 1000, 1024, 1025, 1700]),
    biased=st.booleans(),
    apart=st.integers(0, 5),
)
def test_products_are_rounded_once(rows: int, outputs: int, inputs: int, biased: bool, apart: int) -> None:
    weight_OI, bias_O = numbers(outputs, inputs, seed=1), numbers(outputs, seed=2) if biased else None
    inputs_NI = numbers(rows, inputs + apart)[:, :inputs]
    found_NO = TiledMatrix(weight_OI)(inputs_NI, bias_O)
    exact_NO = inputs_NI.double() @ weight_OI.double().t() + (0.0 if bias_O is None else bias_O.double())
    assert torch.allclose(found_NO.double(), exact_NO, rtol=2.0**-8, atol=1e-6 * inputs)
    alone = [TiledMatrix(weight_OI)(inputs_NI[row : row + 1], bias_O) for row in {0, rows // 2} if rows]
    assert all(torch.equal(one[0], found_NO[row]) for one, row in zip(alone, sorted({0, rows // 2}), strict=False))


@pytest.mark.parametrize(("outputs", "inputs"), [(1000, 500), (4000, 2620)])
def test_products_of_models_sizes(outputs: int, inputs: int) -> None:
    weight_OI, bias_O, inputs_NI = numbers(outputs, inputs, seed=1), numbers(outputs), numbers(75, inputs)
    found_NO = TiledMatrix(weight_OI)(inputs_NI, bias_O)
    exact_NO = inputs_NI.double() @ weight_OI.double().t() + bias_O.double()
    assert torch.allclose(found_NO.double(), exact_NO, rtol=2.0**-8, atol=1e-6 * inputs)
    inputs_NI[40, 3] = torch.nan
    others = torch.arange(75) != 40
    with_none_NO = TiledMatrix(weight_OI)(inputs_NI.view(3, 25, inputs), bias_O).view(75, outputs)
    assert torch.equal(with_none_NO[others], found_NO[others]) and bool(with_none_NO[40].isnan().all())


def test_matrices_of_frozen_models_are_multiplied_so(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.inference_mode(mode=False), torch.no_grad():
        weight_OI, inputs_NI = torch.nn.Parameter(numbers(200, 100)), numbers(40, 100, seed=1)
        freeze(torch.nn.ParameterList([weight_OI]))
        assert isinstance(weight_OI, OrderedMatrix)
        found_NO = linear(inputs_NI, weight_OI)
        assert torch.equal(found_NO, TiledMatrix(weight_OI)(inputs_NI))
        monkeypatch.setattr(library, "has_tiles", False)
        assert torch.allclose(found_NO.float(), linear(inputs_NI, weight_OI).float(), rtol=2.0**-7, atol=1e-4)


@pytest.mark.parametrize("columns", [500, 620])
def test_a_row_is_the_same_whatever_is_beside_it(columns: int) -> None:
    inputs_ND, weight_VD, bias_V = numbers(75, columns), numbers(3000, columns, seed=1, scale=0.1), numbers(3000)
    words = TiledWords(weight_VD, bias_V)
    together_N = log_sum_exp(words, inputs_ND)
    for first, last in ((0, 1), (74, 75), (3, 40), (31, 33)):
        assert torch.equal(log_sum_exp(words, inputs_ND[first:last]), together_N[first:last])
    assert torch.equal(log_sum_exp(words, inputs_ND.flip(0)), together_N.flip(0))


def normalizers(inputs_ND: Tensor, weight_VD: Tensor, bias_V: Tensor) -> Tensor:
    """Of logits of which the first word's is 0."""
    rows = torch.arange(len(inputs_ND))
    return -BlockNormalizer(as_it_is, weight_VD, bias_V).log_probs(inputs_ND, rows, torch.zeros_like(rows))


def test_it_is_nearer_to_the_exact_number_than_without(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs_ND, weight_VD, bias_V = numbers(64, 500), numbers(5000, 500, seed=1, scale=0.1), numbers(5000)
    weight_VD[0], bias_V[0] = 0.0, 0.0
    exact_N = exactly(inputs_ND, weight_VD, bias_V)

    def error() -> float:
        return float((normalizers(inputs_ND, weight_VD, bias_V).double() - exact_N).abs().mean())

    with_them = error()
    monkeypatch.setattr(library, "has_tiles", False)
    assert with_them < 1e-5 < 1e-4 < error()


def test_rows_out_of_range_are_computed_all_the_same() -> None:
    inputs_ND, weight_VD, bias_V = numbers(4, 40), numbers(500, 40, seed=1), numbers(500)
    bias_V[400], bias_V[7] = 300.0, -torch.inf
    weight_VD[0], bias_V[0] = 0.0, 0.0
    inputs_ND[2, 5] = torch.nan
    found_N = normalizers(inputs_ND, weight_VD, bias_V)
    assert found_N.isnan().tolist() == [False, False, True, False]
    some = torch.tensor([0, 1, 3])
    exact_N = exactly(inputs_ND[some], weight_VD, bias_V)
    assert torch.allclose(found_N[some].double(), exact_N, rtol=2.0**-8)


def test_words_that_cannot_come_add_nothing() -> None:
    inputs_ND, weight_VD, bias_V = numbers(40, 64), numbers(500, 64, seed=1, scale=0.1), numbers(500)
    bias_V[100:300] = -torch.inf
    possible = torch.isfinite(bias_V)
    found_N = log_sum_exp(TiledWords(weight_VD, bias_V), inputs_ND)
    assert torch.allclose(found_N.double(), exactly(inputs_ND, weight_VD[possible], bias_V[possible]), atol=2e-6)


def test_other_inputs_are_refused() -> None:
    words, matrix = TiledWords(numbers(50, 40), numbers(50)), TiledMatrix(numbers(50, 40))
    for wrong in (numbers(3, 41), numbers(3, 40).float(), torch.empty(3, 40, dtype=torch.bfloat16, device="meta")):
        for work in (partial(log_sum_exp, words), matrix):
            with pytest.raises(ValueError, match=r"^expected \(rows, 40\) of torch\.bfloat16 on a CPU, not \(3, 4"):
                work(wrong)
    with pytest.raises(ValueError, match=r"^expected a bias of 50 numbers, not \(49,\)$"):
        matrix(numbers(3, 40), numbers(49))
    for block in (16, 48):
        with pytest.raises(ValueError, match=f"^expected blocks of a power of two of words, at least 32, not {block}$"):
            words.scores_into(numbers(3, 50), numbers(3, 40), block)
    for room in (numbers(3, 49), numbers(3, 50).float(), numbers(50, 3).t()):
        with pytest.raises(ValueError, match=r"expected room for \(3, 50\)"):
            words.scores_into(room, numbers(3, 40), 32)


def test_signatures_tell_numbers_of_tiles_from_others(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {kernels.name_kernels(numbers(1))}
    monkeypatch.setattr(library, "has_tiles", False)
    assert not kernels.apply_to(numbers(1, 2), numbers(3, 2), tiles=True)
    assert names == {"|kernels:3+amx3"} and kernels.name_kernels(numbers(1)) == "|kernels:3"


def test_logits_of_pairs_are_those_that_are_summed() -> None:
    inputs_ND, weight_VD, bias_V = numbers(75, 60), numbers(1300, 60, seed=1, scale=0.1), numbers(1300)
    every_M = torch.randperm(75 * 1300, generator=torch.Generator().manual_seed(3))
    shift_N, total_N, logits_M = TiledWords(weight_VD, bias_V).sums(inputs_ND, every_M // 1300, every_M % 1300)
    logits_NV = torch.empty_like(logits_M).index_copy_(0, every_M, logits_M).view(75, 1300)
    exact_NV = inputs_ND.double() @ weight_VD.double().t() + bias_V.double()
    assert torch.allclose(logits_NV.double() + shift_N.unsqueeze(1), exact_NV, atol=1e-5)
    assert torch.allclose(logits_NV.double().exp().sum(dim=1), total_N.double(), rtol=2e-6)
