"""What cuDNN is given for LSTM layers in one call, looked at where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt_core.layers.cells import PlainLSTM
from nmt_core.layers.whole_lstm import run_layer

SENTENCES, WORDS, EMBEDDING, HIDDEN = 3, 4, 6, 5
RNN: Any = torch.backends.cudnn.rnn


@pytest.fixture
def restored() -> Iterator[None]:
    """Precisions are settings of the process."""
    matmul, rnn = torch.backends.cuda.matmul, RNN
    before = matmul.fp32_precision, rnn.fp32_precision
    yield
    matmul.fp32_precision, rnn.fp32_precision = before


class Seen:
    """The arguments of ``torch.lstm``, and what autocast was like there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.autocast = True
        self.below, self.first, self.weights = torch.empty(0), list[Tensor](), list[Tensor]()
        true_lstm = torch.lstm

        def lstm(below: Tensor, first: list[Tensor], weights: list[Tensor], *others: Any) -> Any:
            self.below, self.first, self.weights = below, first, weights
            self.autocast = torch.is_autocast_enabled("cpu")
            return true_lstm(below, first, weights, *others)

        monkeypatch.setattr(torch, "lstm", lstm)


def run(*, autocast: bool = False) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    cell = PlainLSTM(HIDDEN)
    inputs = cell.inputs(EMBEDDING)
    for parameter in (*cell.parameters(), *inputs.parameters()):
        torch.nn.init.normal_(parameter)
    below, first = torch.randn(SENTENCES, WORDS, EMBEDDING), torch.randn(SENTENCES, 2 * HIDDEN)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        return run_layer(cell, inputs, below, first)


def test_states_and_weights_with_the_zeros_of_biases_are_in_one_piece(
    monkeypatch: pytest.MonkeyPatch, restored: None
) -> None:
    """CuDNN's wrapper refuses other states, and brings other weights together at every call, with a warning."""
    seen = Seen(monkeypatch)
    run()
    assert [one.is_contiguous() for one in seen.first] == [True, True]
    first, second = seen.weights
    assert first.storage_offset() == 0
    assert second.data_ptr() == first.data_ptr() + 4 * first.numel()
    biases = torch.empty(0).set_(first.untyped_storage())[first.numel() + second.numel() :]
    assert biases.tolist() == [0.0] * (8 * HIDDEN)


def test_under_autocast_all_is_bfloat16_and_autocast_is_off(monkeypatch: pytest.MonkeyPatch, restored: None) -> None:
    """Autocast would make float16 of it, and there is no scaling of losses."""
    seen = Seen(monkeypatch)
    hidden, last = run(autocast=True)
    assert not seen.autocast
    assert {one.dtype for one in (seen.below, *seen.first, *seen.weights, hidden, last)} == {torch.bfloat16}
    exact, _ = run()
    torch.testing.assert_close(hidden.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize(("products", "layers"), [("none", "ieee"), ("ieee", "ieee"), ("tf32", "tf32")])
def test_float32_is_as_precise_as_in_products(products: str, layers: str, restored: None) -> None:
    RNN.fp32_precision = "ieee" if layers == "tf32" else "tf32"
    torch.backends.cuda.matmul.fp32_precision = products
    run()
    assert RNN.fp32_precision == layers
