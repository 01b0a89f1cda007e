"""Compiled kernels against float64, for any sizes; each row alone is the row in company."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nmt_core.layers.attention import AdditiveAttention, AttentionLoop
from nmt_core.layers.cells import GRU, PlainLSTM
from nmt_core.models.encoder_decoder import MaxoutReadout
from nmt_core.native import kernels

SIZES = st.integers(1, 70)
ROUNDING = 2.0**-8  # of a bfloat16, twice the largest
pytestmark = pytest.mark.usefixtures("library", "one_thread")
any_sizes = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


def near(found: Tensor, exact: Tensor, *, absolute: float = 1e-6) -> bool:
    """Up to one rounding to bfloat16."""
    return torch.allclose(found.double(), exact, rtol=ROUNDING, atol=absolute)


@any_sizes
@given(rows=st.integers(1, 4), words=st.integers(1, 400), more=st.integers(0, 9), scale=st.floats(0.1, 15))
def test_exponentials_are_summed(rows: int, words: int, more: int, scale: float) -> None:
    logits_NV = numbers(rows, words + more, scale=scale)[:, :words]
    total_N = torch.full((rows,), 0.5)
    kernels.add_exponentials(logits_NV, total_N)
    exact_N = logits_NV.double().exp().sum(dim=1) + 0.5
    assert torch.allclose(total_N.double(), exact_N, rtol=1e-6, atol=0.0)


@any_sizes
@given(
    rows=st.integers(1, 4),
    words=st.integers(1, 400),
    block=st.sampled_from([1, 16, 128]),
    scale=st.floats(0.1, 99),
)
def test_scores_are_normalised_and_the_best_of_blocks_found(rows: int, words: int, block: int, scale: float) -> None:
    scores_NV = numbers(rows, words, scale=scale)
    tops_NG, normalizer_N = kernels.normalize(scores_NV, block)
    assert torch.equal(tops_NG, torch.stack([part.amax(dim=1) for part in scores_NV.split(block, dim=1)], dim=1))
    assert torch.allclose(normalizer_N.double(), scores_NV.double().logsumexp(dim=1), rtol=1e-6, atol=1e-6)


@any_sizes
@given(data=st.data(), sentences=st.integers(1, 3), positions=st.integers(1, 20), units=SIZES, size=SIZES)
def test_attention_is_that_of_the_equations(
    data: st.DataObject, sentences: int, positions: int, units: int, size: int
) -> None:
    owners = sorted(data.draw(st.lists(st.integers(0, sentences - 1), min_size=1, max_size=9)))
    widths = data.draw(st.lists(st.integers(1, positions), min_size=sentences, max_size=sentences))
    query_NA, energy_A = numbers(len(owners), units, seed=1, scale=3), numbers(units, seed=2)
    keys_BSA, values_BSX = numbers(sentences, positions, units, seed=3), numbers(sentences, positions, size, seed=4)
    owner_N, words_B = torch.tensor(owners), torch.tensor(widths)
    context_NX, weights_NS = kernels.attend(query_NA, keys_BSA, values_BSX, energy_A, owner_N, words_B)
    energies_NS = torch.tanh(query_NA.double().unsqueeze(1) + keys_BSA.double()[owner_N]) @ energy_A.double()
    outside_NS = torch.arange(positions) >= words_B[owner_N].unsqueeze(1)
    exact_NS = energies_NS.masked_fill(outside_NS, -torch.inf).softmax(dim=1)
    assert torch.allclose(weights_NS.double(), exact_NS, rtol=0.0, atol=3e-6)
    assert near(context_NX, (exact_NS.unsqueeze(1) @ values_BSX.double()[owner_N]).squeeze(1), absolute=2e-5)
    for row in range(len(owners)):
        part = slice(row, row + 1)
        alone = kernels.attend(query_NA[part], keys_BSA, values_BSX, energy_A, owner_N[part], words_B)
        assert torch.equal(alone[0], context_NX[part]) and torch.equal(alone[1], weights_NS[part])


@any_sizes
@given(rows=st.integers(1, 5), units=SIZES, context=st.booleans(), apart=st.booleans())
def test_a_step_of_gated_units_is_that_of_the_equations(rows: int, units: int, context: bool, apart: bool) -> None:
    word_N3H = numbers(rows, 3 * units, seed=1)
    context_N3H = numbers(rows, 5 * units, seed=2, scale=2)[:, : 3 * units] if context else None
    if context_N3H is not None and not apart:
        context_N3H = context_N3H.contiguous()
    state_NH = numbers(rows, units, seed=3).tanh()
    gates_N2H, candidate_NH = numbers(rows, 2 * units, seed=4, scale=4), numbers(rows, units, seed=5)
    seen: list[Tensor] = []
    next_NH = kernels.gated_step(
        word_N3H, context_N3H, state_NH, lambda _: gates_N2H, lambda kept: seen.append(kept) or candidate_NH
    )
    inputs_N3H = word_N3H.double() + (0.0 if context_N3H is None else context_N3H.double())
    update_NH, reset_NH = (inputs_N3H[:, units:] + gates_N2H.double()).sigmoid().chunk(2, dim=1)
    assert near(seen[0], reset_NH * state_NH.double())
    exact_NH = torch.lerp(state_NH.double(), (inputs_N3H[:, :units] + candidate_NH.double()).tanh(), update_NH)
    assert torch.allclose(next_NH.double(), exact_NH, rtol=ROUNDING, atol=2 * ROUNDING)


@any_sizes
@given(rows=st.integers(1, 5), units=SIZES, context=st.booleans(), apart=st.booleans(), remember=st.integers(0, 1))
def test_a_step_of_memory_cells_is_that_of_the_equations(
    rows: int, units: int, context: bool, apart: bool, remember: int
) -> None:
    word_N4H, product_N4H = numbers(rows, 4 * units, seed=1), numbers(rows, 4 * units, seed=4, scale=4)
    context_N4H = numbers(rows, 5 * units, seed=2, scale=2)[:, : 4 * units] if context else None
    state_N2H = numbers(rows, 2 * units + 3 * apart, seed=3)[:, : 2 * units]
    inputs = [word_N4H, context_N4H, state_N2H, product_N4H]
    next_N2H = kernels.memory_cell_step(*inputs, remember=float(remember))
    sums_N4H = sum((one.double() for one in (word_N4H, context_N4H, product_N4H) if one is not None), torch.zeros(()))
    i_NH, f_NH, o_NH, g_NH = sums_N4H.chunk(4, dim=1)
    cell_NH = (f_NH + remember).sigmoid() * state_N2H[:, units:].double() + i_NH.sigmoid() * g_NH.tanh()
    assert near(next_N2H, torch.cat([o_NH.sigmoid() * cell_NH.tanh(), cell_NH], dim=1))
    for row in range(rows):
        part = [None if one is None else one[row : row + 1] for one in inputs]
        assert torch.equal(kernels.memory_cell_step(*part, remember=float(remember)), next_N2H[row : row + 1])


@any_sizes
@given(rows=st.integers(1, 5), units=SIZES, pieces=st.integers(1, 3), apart=st.booleans())
def test_maxout_is_the_larger_of_two(rows: int, units: int, pieces: int, apart: bool) -> None:
    given_ = [numbers(rows, 2 * units + 3 * apart, seed=seed)[:, : 2 * units] for seed in range(pieces)]
    total = sum((piece.double() for piece in given_), start=torch.zeros(()))
    assert near(kernels.maxout(given_), torch.maximum(total[:, 0::2], total[:, 1::2]))


def test_errors_are_no_larger_than_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of steps of GRU and LSTM, attention and maxout, of the sizes of models, against the same in float64."""
    torch.manual_seed(1)
    rows, units, positions = 40, 320, 15
    cell, attention, readout = GRU(units), AdditiveAttention(units, 2 * units, units), MaxoutReadout(units, 8, 8, units)
    parts = nn.ModuleList([cell, attention, readout, PlainLSTM(units)])
    for parameter in parts.parameters():
        parameter.normal_(std=0.1)
    parts.bfloat16()
    tensors = [numbers(rows, 3 * units, seed=1), numbers(rows, units, seed=2).tanh(), numbers(rows, 3 * units, seed=3)]
    tensors += [numbers(rows, 4 * units, seed=7), numbers(rows, 2 * units, seed=8)]
    tensors += [
        numbers(4, positions, 99, seed=4),
        numbers(4, positions, units, seed=5),
        numbers(rows, 2 * units, seed=6),
    ]
    words_B = torch.full((4,), positions)

    def results(dtype: torch.dtype) -> list[Tensor]:
        word_N3H, state_NH, context_N3H, word_N4H, state_N2H, *others = (tensor.to(dtype) for tensor in tensors)
        values_BSX, keys_BSA, part_N2L = others
        model_cell, model_attention, model_readout, memory_cell = copy.deepcopy(parts).to(dtype)
        attended = AttentionLoop(model_attention, values_BSX, keys_BSA, words_B)(state_NH)
        return [
            model_cell.recurrence()(word_N3H, state_NH, context_N3H).double(),
            memory_cell.recurrence()(word_N4H, state_N2H, word_N4H).double(),
            attended.context_NX.double(),
            model_readout.join(state_NH, part_N2L, part_N2L).double(),
        ]

    exact = results(torch.float64)

    def errors() -> list[float]:
        both = zip(results(torch.bfloat16), exact, strict=True)
        return [float((coarse - fine).square().mean().sqrt()) for coarse, fine in both]

    with_kernels = errors()
    monkeypatch.setattr(kernels, "load", lambda: None)
    for error, without in zip(with_kernels, errors(), strict=True):
        assert 0.0 < error <= without


def test_what_is_no_number_stays_none_and_what_is_too_large_is_infinite() -> None:
    logits_NV = numbers(4, 300)
    logits_NV[1, 200], logits_NV[2, 299], logits_NV[3, 17] = float("nan"), 90.0, -torch.inf
    total_N = torch.zeros(4)
    kernels.add_exponentials(logits_NV, total_N)
    assert torch.isfinite(total_N).tolist() == [True, False, False, True] and total_N[2] == torch.inf
    nothing_N = torch.zeros(1)
    kernels.add_exponentials(torch.full((1, 3), -106.0, dtype=torch.bfloat16), nothing_N)
    assert nothing_N.item() == 0.0
    tops_NG, normalizer_N = kernels.normalize(logits_NV, 128)
    assert torch.isnan(normalizer_N).tolist() == torch.isnan(tops_NG).any(dim=1).tolist() == [False, True, False, False]


def test_they_are_for_bfloat16_on_a_cpu_without_gradients_and_threads() -> None:
    assert kernels.apply_to(numbers(1)) and not kernels.apply_to(numbers(1), torch.zeros(1))
    assert not kernels.apply_to(torch.empty(1, dtype=torch.bfloat16, device="meta"))
    with torch.inference_mode(mode=False), torch.enable_grad():
        assert not kernels.apply_to(numbers(1))
    torch.set_num_threads(2)
    assert not kernels.apply_to(numbers(1)) and kernels.name_kernels(numbers(1)) == ""


WRONG = [
    numbers(2, 8),
    numbers(3, 7),
    torch.zeros(3, 8),
    torch.empty(3, 8, dtype=torch.bfloat16, device="meta"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_kernel_would_read_wrongly_is_refused(wrong: Tensor) -> None:
    problem = (
        r"^expected \(3, 8\) of torch\.bfloat16 on a CPU, rows in one piece, not \(\d, \d\) of torch\.\w+ on \w+, "
    )
    with pytest.raises(ValueError, match=problem):
        kernels.maxout([numbers(3, 8), wrong])


@pytest.mark.parametrize("place", range(6))
def test_every_tensor_of_attention_is_looked_at(place: int) -> None:
    places = torch.tensor([1])
    right = [numbers(1, 8), numbers(1, 2, 8), numbers(1, 2, 3), numbers(8), places - 1, places]
    kernels.attend(*right)
    right[place] = right[place].double()
    with pytest.raises(ValueError, match=r"^expected \(.* not .* of torch\.float64 on cpu"):
        kernels.attend(*right)
