"""Recurrent cells: one step of a recurrence.

A cell reads an input and its state before. Inputs come as what they add to the cell's *gates*, so that
the products with all inputs of a sentence can be made at once (``Cell.inputs``); ``recurrence`` is the
rest of the step, for one loop. To add a cell, write its class and give it a name in ``CELLS``: ``model.cell`` takes it.

Shapes: N rows, H hidden units, G = H, 3H or 4H (what an input adds to all gates side by side) and U = H or 2H (a
state: first the hidden units, and behind them an LSTM's memory cells).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt_core.layers.init import Initialiser, Layer
from nmt_core.layers.products import Linear, shared_matrix
from nmt_core.native import kernels

Recurrence = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(input (N, G), state (N, U), what a context adds (N, G) or None) -> the next state (N, U)."""


class GateInputs(Linear):
    """What an input adds to the gates, in one product; the first parts of the gates have a bias."""


class Cell(Layer, abc.ABC):
    """One step of a recurrence.

    An input has ``input_parts`` times H numbers, of which ``biased_parts`` have a bias; a state ``state_parts`` times.
    """

    input_parts: ClassVar[int] = 3
    biased_parts: ClassVar[int] = 1
    state_parts: ClassVar[int] = 1

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.input_size, self.state_size = self.input_parts * hidden, self.state_parts * hidden  # G and U

    def inputs(self, size: int, *, bias: bool = True) -> GateInputs:
        """The product with inputs of ``size``, with the cell's biases or without."""
        return GateInputs(size, self.input_size, biases=self.biased_parts * self.hidden if bias else 0)

    @abc.abstractmethod
    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop."""

    def hidden_part(self, state: Tensor) -> Tensor:
        """What others read of a state, (..., U) -> (..., H)."""
        return state if self.state_parts == 1 else state[..., : self.hidden]


class VanillaRNN(Cell):
    """h' = tanh(x + c + U h): x = W e + b from the input, c from the context (Luong's thesis 2016, equation 2.2)."""

    input_parts = 1

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.recurrent = nn.Parameter(torch.empty(hidden, hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        """Orthogonal."""
        initialiser.recurrent(self.recurrent)

    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop."""
        recurrent = shared_matrix(self.recurrent)

        def step(word_NH: Tensor, state_NH: Tensor, context_NH: Tensor | None) -> Tensor:
            inputs_NH = word_NH if context_NH is None else word_NH + context_NH
            return torch.tanh(inputs_NH + recurrent(state_NH))

        return step


class GRU(Cell):
    """h' = (1 - z) h + z tanh(x + c + U (r h)), Bahdanau et al. 2015, appendix A.1.1 and A.2.2.

    x comes from the input and c from the context, as candidate, update gate and reset gate side by side; only
    the candidate has a bias. It reads the *reset* state: the reset stands before the product, unlike in
    ``torch.nn.GRU``. The update gate z weights the new candidate, as Bahdanau et al. write it (Cho et al.
    2014 write z for what is kept: the same family of functions with the opposite sign).
    """

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.gates = nn.Parameter(torch.empty(2 * hidden, hidden))
        self.candidate = nn.Parameter(torch.empty(hidden, hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        """Orthogonal."""
        initialiser.recurrent(self.gates)
        initialiser.recurrent(self.candidate)

    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop."""
        gates, candidate = shared_matrix(self.gates), shared_matrix(self.candidate)

        def step(word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None) -> Tensor:
            if kernels.apply_to(word_N3H, state_NH):
                return kernels.gated_step(word_N3H, context_N3H, state_NH, gates, candidate)
            inputs_N3H = word_N3H if context_N3H is None else word_N3H + context_N3H
            candidate_NH, gates_N2H = inputs_N3H.split((self.hidden, 2 * self.hidden), dim=1)
            update_NH, reset_NH = (gates_N2H + gates(state_NH)).sigmoid_().chunk(2, dim=1)
            candidate_NH = (candidate_NH + candidate(reset_NH * state_NH)).tanh_()
            return between(state_NH, candidate_NH, update_NH)

        return step


class ContextResetGRU(GRU):
    """h' = (1 - z) h + z tanh(x + r (U h + c)): the reset gates the context too, Cho et al. 2014, supplement."""

    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop, in which there is a context."""
        gates, candidate = shared_matrix(self.gates), shared_matrix(self.candidate)

        def step(word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None) -> Tensor:
            assert context_N3H is not None
            sizes = (self.hidden, 2 * self.hidden)
            word_NH, word_gates_N2H = word_N3H.split(sizes, dim=1)
            context_NH, context_gates_N2H = context_N3H.split(sizes, dim=1)
            gates_N2H = word_gates_N2H + context_gates_N2H + gates(state_NH)
            update_NH, reset_NH = gates_N2H.sigmoid_().chunk(2, dim=1)
            candidate_NH = (word_NH + reset_NH * (context_NH + candidate(state_NH))).tanh_()
            return between(state_NH, candidate_NH, update_NH)

        return step


class LSTM(Cell):
    """The LSTM (Hochreiter and Schmidhuber 1997, with forget gates, without peepholes).

    i, f, o = sigmoid(x + U h), g = tanh(x + U h), c' = f c + i g, h' = o tanh(c'), with 1 added to what the forget
    gate reads, so that an untrained cell remembers (Jozefowicz et al. 2015). All parts of x have biases.
    """

    input_parts = 4
    biased_parts = 4
    state_parts = 2
    remember: ClassVar[float] = 1.0  # what is added to what the forget gate reads

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.gates = nn.Parameter(torch.empty(4 * hidden, hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        """Orthogonal."""
        initialiser.recurrent(self.gates)

    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop."""
        gates = shared_matrix(self.gates)

        def step(word_N4H: Tensor, state_N2H: Tensor, context_N4H: Tensor | None) -> Tensor:
            hidden_NH, cell_NH = state_N2H.chunk(2, dim=1)
            if kernels.apply_to(word_N4H, state_N2H):
                product_N4H = gates(hidden_NH)
                return kernels.memory_cell_step(word_N4H, context_N4H, state_N2H, product_N4H, remember=self.remember)
            inputs_N4H = word_N4H if context_N4H is None else word_N4H + context_N4H
            i_NH, f_NH, o_NH, g_NH = (inputs_N4H + gates(hidden_NH)).chunk(4, dim=1)
            cell_NH = torch.sigmoid(f_NH + self.remember) * cell_NH + torch.sigmoid(i_NH) * torch.tanh(g_NH)
            return torch.cat([torch.sigmoid(o_NH) * torch.tanh(cell_NH), cell_NH], dim=1)

        return step


class PlainLSTM(LSTM):
    """``LSTM`` without biases, and nothing is added for the forget gate (Luong et al. 2015, with their code)."""

    biased_parts = 0
    remember = 0.0


CELLS: dict[str, type[Cell]] = {
    "vanilla": VanillaRNN,
    "gru": GRU,
    "lstm": LSTM,
    "plain-lstm": PlainLSTM,
}


def between(state_NH: Tensor, candidate_NH: Tensor, update_NH: Tensor) -> Tensor:
    """(1 - z) h + z h'; in one pass, unless the types differ, as under autocast."""
    if update_NH.dtype == state_NH.dtype:
        return torch.lerp(state_NH, candidate_NH, update_NH)
    return state_NH + update_NH * (candidate_NH - state_NH)
