"""The LSTM unit (Hochreiter and Schmidhuber 1997, with forget gates, without peepholes).

    i, f, o = sigmoid(x + U h)        g = tanh(x + U h)        c' = f c + i g        h' = o tanh(c')

with 1 added to what the forget gate reads, so that an untrained unit remembers (Jozefowicz et al. 2015).

Shapes: N rows, H hidden units; ``4H`` stands for i, f, o and g side by side, ``2H`` for h and c.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt_core.layers.shared_product import SharedMatrix

_REMEMBER = 1.0


class LSTMUnit(nn.Module):
    """See the module's docstring; x comes from the word, its bias in it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Parameter(torch.empty(4 * hidden, hidden))

    def forward(self, word_N4H: Tensor, state_N2H: Tensor) -> Tensor:
        """One step alone: (N, 2H)."""
        return self.recurrence()(word_N4H, state_N2H)

    def recurrence(self) -> LSTMRecurrence:
        """The unit for the steps of one loop."""
        return LSTMRecurrence(SharedMatrix(self.gates))


class LSTMRecurrence:
    """``LSTMUnit`` during one loop."""

    def __init__(self, gates: SharedMatrix) -> None:
        self.gates = gates

    def __call__(self, word_N4H: Tensor, state_N2H: Tensor) -> Tensor:
        """One step: (N, 2H)."""
        hidden_NH, cell_NH = state_N2H.chunk(2, dim=1)
        enter_NH, keep_NH, show_NH, new_NH = (word_N4H + self.gates(hidden_NH)).chunk(4, dim=1)
        cell_NH = torch.sigmoid(keep_NH + _REMEMBER) * cell_NH + torch.sigmoid(enter_NH) * torch.tanh(new_NH)
        return torch.cat([torch.sigmoid(show_NH) * torch.tanh(cell_NH), cell_NH], dim=1)
