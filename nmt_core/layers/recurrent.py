"""The gated unit of Cho et al. 2014 and the encoders made of it.

The candidate reads the *reset* state, U (r * h): the reset stands before the product, unlike in
``torch.nn.GRU``. The update gate z weights the new candidate, as Bahdanau et al. 2015 write it
(Cho et al. write z for what is kept: the same family of functions with the opposite sign).

Shapes: B sentences, S positions, N rows, E embedding, H hidden units; ``3H`` stands for candidate,
update gate and reset gate side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.batching import Padded, whole_positions
from nmt_core.data.prefix_tree import grow
from nmt_core.data.sizes import filled
from nmt_core.layers.embedding import WordEmbedding
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
        update_NH, reset_NH = (gates_N2H + self.gates(state_NH)).sigmoid_().chunk(2, dim=1)
        candidate_NH = (candidate_NH + self.candidate(reset_NH * state_NH)).tanh_()
        return _between(state_NH, candidate_NH, update_NH)


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
        update_NH, reset_NH = gates_N2H.sigmoid_().chunk(2, dim=1)
        candidate_NH = (word_NH + reset_NH * (context_NH + self.candidate(state_NH))).tanh_()
        return _between(state_NH, candidate_NH, update_NH)


def _between(state_NH: Tensor, candidate_NH: Tensor, update_NH: Tensor) -> Tensor:
    """(1 - z) h + z h', in one pass where all have the same type, which under autocast they have not."""
    if update_NH.dtype == state_NH.dtype:
        return torch.lerp(state_NH, candidate_NH, update_NH)
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
        whole_S = whole_positions(mask_BS)  # they need no mask
        unit = self.unit.recurrence()
        state_BH = embedded_BSE.new_zeros(embedded_BSE.shape[0], self.inputs.hidden)
        positions = range(len(inputs_S))
        states: list[Tensor] = [state_BH] * len(inputs_S)
        for position in reversed(positions) if self.backward else positions:
            new_BH = unit(inputs_S[position], state_BH)
            state_BH = new_BH if whole_S[position] else torch.where(mask_S[position], new_BH, state_BH)
            states[position] = state_BH
        return torch.stack(states, dim=1)

    def shared(self, embedding: WordEmbedding, source: Padded) -> SharedStates:
        """The same states, each computed once for all sentences that have it; for inference on a CPU.

        From the left, sentences share the states of common beginnings; from the right, of common ends.
        """
        words_BS, lengths_B = source.words_BL.numpy(), source.mask_BL.sum(dim=1).numpy()
        positions_BS = np.arange(words_BS.shape[1])[None, :]
        if self.backward:
            positions_BS = np.maximum(lengths_B[:, None] - 1 - positions_BS, 0)
            words_BS = np.take_along_axis(words_BS, positions_BS, axis=1)
        tree = grow(np.zeros(len(words_BS), dtype=np.int64), words_BS, lengths_B)
        known, rows = np.unique(np.concatenate([level.words for level in tree.levels]), return_inverse=True)
        known = np.pad(known, (0, filled(len(known), embedding.weight) - len(known)))
        inputs_U3H = self.inputs(embedding.known(torch.from_numpy(known)))
        unit = self.unit.recurrence()
        above_NH = inputs_U3H.new_zeros(1, self.inputs.hidden)
        states: list[Tensor] = []
        ends = np.cumsum([len(level.words) for level in tree.levels])
        for level, words in zip(tree.levels, np.split(rows.reshape(-1), ends[:-1]), strict=True):
            places = level.entries[level.nodes] if states else level.nodes
            filling = (0, filled(len(words), inputs_U3H) - len(words))
            inputs_N3H = inputs_U3H.index_select(0, torch.from_numpy(np.pad(words, filling)))
            above_NH = unit(inputs_N3H, above_NH.index_select(0, torch.from_numpy(np.pad(places, filling))))
            states.append(above_NH[: len(words)])
        edges_BS = tree.edges_PL if not self.backward else np.take_along_axis(tree.edges_PL, positions_BS, axis=1)
        states_EH = torch.cat(states)
        states_EH = F.pad(states_EH, (0, 0, 0, filled(len(states_EH), states_EH) - len(states_EH)))
        return SharedStates(states_EH, torch.from_numpy(np.maximum(edges_BS, 0)))


def can_share(source: Padded) -> bool:
    """Whether encoders compute equal states once: in inference, on a CPU, where looking for them costs nothing."""
    return not torch.is_grad_enabled() and not source.words_BL.is_cuda


class SharedStates(NamedTuple):
    """States (E, H) of an encoder, and which of them each position of each sentence has; any at padding."""

    states_EH: Tensor
    places_BS: Tensor
