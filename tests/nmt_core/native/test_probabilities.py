"""Probabilities are at most 1 and sum to 1 however large logits are, by every way in which they are computed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt_core.layers.cells import GRU
from nmt_core.layers.characters import SpellingDecoder
from nmt_core.layers.generator import Generator, LinearGenerator
from nmt_core.layers.products import freeze
from nmt_core.layers.recurrent import Layers
from tests.pretended_gpu import DEVICE, PretendedGPU

WORDS, UNITS, ROWS = 2500, 24, 40
AT_MOST, SUM = 1e-6, 2e-6


@pytest.fixture(autouse=True, params=["kernels", "tiles", "none", "threads", "gpu"])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device | None]:
    """Every form of the normaliser; where models are."""
    fixtures = {"kernels": "library", "tiles": "library_with_tiles"}
    request.getfixturevalue(fixtures.get(request.param, "no_library"))
    if request.param != "threads":
        request.getfixturevalue("one_thread")
    with torch.inference_mode():
        if request.param != "gpu":
            yield None
            return
        with PretendedGPU():
            yield DEVICE


def with_logits_of(largest: float, dtype: torch.dtype, *, rank: int | None = None) -> tuple[LinearGenerator, Tensor]:
    """Of the first row the word that is likely is none of the frequent ones."""
    numbers = torch.Generator().manual_seed(3)
    with torch.inference_mode(mode=False), torch.no_grad():
        output = LinearGenerator(UNITS, WORDS, rank=rank)
        for parameter in output.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=numbers))
        readout_NL = torch.randn(ROWS, UNITS, generator=numbers)
        output.weight[-1] = 1.5 * output._inputs(readout_NL[:1])[0]
        peaks_N = output.logits(readout_NL).amax(dim=1)
        output.bias.zero_()
        readout_NL *= (largest / peaks_N).unsqueeze(1)
        freeze(output.to(dtype))
        return output, readout_NL.to(dtype)


def of_all_words(output: Generator, readout_NL: Tensor) -> Tensor:
    rows, words = len(readout_NL), output.words
    every = torch.arange(words).repeat(rows).to(readout_NL.device)
    found = output.log_prob_at(readout_NL, torch.arange(rows).repeat_interleave(words), every)
    return found.cpu().double().view(rows, words)


def check(log_probs_NV: Tensor) -> None:
    assert float(log_probs_NV.max()) <= AT_MOST
    assert float((log_probs_NV.exp().sum(dim=1) - 1.0).abs().max()) <= SUM


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("largest", [17.0, 50.0, 100.0])
@pytest.mark.parametrize("rank", [None, 8, 32])
@pytest.mark.parametrize("restricted", [False, True])
def test_words(
    device: torch.device | None, dtype: torch.dtype, largest: float, rank: int | None, *, restricted: bool
) -> None:
    output, readout_NL = with_logits_of(largest, dtype, rank=rank)
    generator: Generator = output.to(device or "cpu")
    readout_NL = readout_NL.to(device or "cpu")
    if restricted:
        generator = output.restricted_to(torch.arange(1, WORDS, 3).to(device or "cpu"))
    found_NV = of_all_words(generator, readout_NL)
    check(found_NV)
    assert restricted or float(found_NV[0].amax()) > -0.01


@pytest.mark.parametrize("largest", [17.0, 50.0, 100.0])
def test_characters(device: torch.device | None, largest: float) -> None:
    torch.manual_seed(1)
    with torch.inference_mode(mode=False), torch.no_grad():
        speller = SpellingDecoder(9, 8, 16, Layers(GRU), biased=True)
        for parameter in speller.parameters():
            torch.nn.init.normal_(parameter)
        speller.output.weight *= largest / 8.0
        freeze(speller.to(torch.bfloat16))
    starts_MH = torch.randn(9, 16).bfloat16()
    spellings_MC = torch.arange(9).unsqueeze(1)  # the end at once, or a character and the end
    if device is not None:
        speller, starts_MH, spellings_MC = speller.to(device), starts_MH.to(device), spellings_MC.to(device)
    assert float(speller.log_probs(starts_MH, spellings_MC).cpu().max()) <= AT_MOST
    readout_NL = speller.known(starts_MH, spellings_MC).readouts_NH
    check(of_all_words(speller.generator, readout_NL))


def test_rows_that_do_not_ascend_are_refused() -> None:
    output, readout_NL = with_logits_of(17.0, torch.bfloat16)
    with pytest.raises(ValueError, match="ascending"):
        output.log_prob_at(readout_NL, torch.tensor([1, 0]), torch.tensor([5, 6]))
