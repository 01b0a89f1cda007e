"""The gated unit of Cho et al. 2014 and the encoders made of it.

The candidate reads the *reset* state, U (r * h): the reset stands before the product, unlike in
``torch.nn.GRU``. The update gate z weights the new candidate, as Bahdanau et al. 2015 write it
(Cho et al. write z for what is kept: the same family of functions with the opposite sign).

Shapes: B sentences, S positions, N rows, E embedding, H hidden units; ``3H`` stands for candidate,
update gate and reset gate side by side.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.layers.shared_product import SharedMatrix


class GateInputs(nn.Module):
    """What an input adds to candidate, update and reset, in one product; only the candidate has a bias."""

    def __init__(self, size: int, hidden: int, *, bias: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.weight = nn.Parameter(torch.empty(3 * hidden, size))
        self.bias = nn.Parameter(torch.empty(hidden)) if bias else None

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., size) -> (..., 3H)."""
        bias = None if self.bias is None else F.pad(self.bias, (0, 2 * self.hidden))
        return F.linear(inputs, self.weight, bias)


class GatedUnit(nn.Module):
    """h' = (1 - z) h + z tanh(x + c + U (r h)), Bahdanau et al. 2015, appendix A.1.1 and A.2.2.

    x comes from the word and c from the context; both are given as ``3H`` parts.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Parameter(torch.empty(2 * hidden, hidden))
        self.candidate = nn.Parameter(torch.empty(hidden, hidden))

    def forward(self, word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None = None) -> Tensor:
        """One step alone: (N, H)."""
        return self.recurrence()(word_N3H, state_NH, context_N3H)

    def recurrence(self) -> Recurrence:
        """The unit for the steps of one loop."""
        return Recurrence(SharedMatrix(self.gates), SharedMatrix(self.candidate))


class Recurrence:
    """``GatedUnit`` during one loop."""

    def __init__(self, gates: SharedMatrix, candidate: SharedMatrix) -> None:
        self.gates = gates
        self.candidate = candidate

    def __call__(self, word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None = None) -> Tensor:
        """One step: (N, H)."""
        hidden = state_NH.shape[1]
        inputs = word_N3H if context_N3H is None else word_N3H + context_N3H
        candidate_NH, gates_N2H = inputs.split((hidden, 2 * hidden), dim=1)
        update_NH, reset_NH = torch.sigmoid(gates_N2H + self.gates(state_NH)).chunk(2, dim=1)
        candidate_NH = torch.tanh(candidate_NH + self.candidate(reset_NH * state_NH))
        return state_NH + update_NH * (candidate_NH - state_NH)


class ContextResetUnit(GatedUnit):
    """h' = (1 - z) h + z tanh(x + r (U h + c)): the reset gates the context too, Cho et al. 2014, supplement."""

    def recurrence(self) -> Recurrence:
        """The unit for the steps of one loop."""
        return ContextResetRecurrence(SharedMatrix(self.gates), SharedMatrix(self.candidate))


class ContextResetRecurrence(Recurrence):
    """``ContextResetUnit`` during one loop."""

    def __call__(self, word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None = None) -> Tensor:
        """One step: (N, H)."""
        assert context_N3H is not None
        hidden = state_NH.shape[1]
        word_NH, word_gates_N2H = word_N3H.split((hidden, 2 * hidden), dim=1)
        context_NH, context_gates_N2H = context_N3H.split((hidden, 2 * hidden), dim=1)
        gates_N2H = word_gates_N2H + context_gates_N2H + self.gates(state_NH)
        update_NH, reset_NH = torch.sigmoid(gates_N2H).chunk(2, dim=1)
        candidate_NH = torch.tanh(word_NH + reset_NH * (context_NH + self.candidate(state_NH)))
        return state_NH + update_NH * (candidate_NH - state_NH)


class RecurrentEncoder(nn.Module):
    """A gated unit run over embedded words, from the left or from the right; padding leaves the state alone."""

    def __init__(self, embedding: int, hidden: int, *, backward: bool = False) -> None:
        super().__init__()
        self.inputs = GateInputs(embedding, hidden, bias=True)
        self.unit = GatedUnit(hidden)
        self.backward = backward

    def forward(self, embedded_BSE: Tensor, mask_BS: Tensor) -> Tensor:
        """The state at every position, (B, S, H); behind the end of a sentence it is the last (or first) state."""
        inputs_S = self.inputs(embedded_BSE).unbind(dim=1)
        mask_S = mask_BS.unsqueeze(2).unbind(dim=1)
        whole_S = mask_BS.all(dim=0).tolist()  # positions without padding need no mask
        unit = self.unit.recurrence()
        state_BH = embedded_BSE.new_zeros(embedded_BSE.shape[0], self.inputs.hidden)
        positions = range(len(inputs_S))
        states: list[Tensor] = [state_BH] * len(inputs_S)
        for position in reversed(positions) if self.backward else positions:
            new_BH = unit(inputs_S[position], state_BH)
            state_BH = new_BH if whole_S[position] else torch.where(mask_S[position], new_BH, state_BH)
            states[position] = state_BH
        return torch.stack(states, dim=1)
