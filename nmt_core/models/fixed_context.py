"""The source as one vector, the same at every step (Cho et al. 2014).

Shapes: as in ``nmt_core.models.context``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.cells import GateInputs
from nmt_core.layers.reader import Encoded
from nmt_core.models.context import Context, ContextTerms, LoopContext, StepContext
from nmt_core.models.rows import Memory


@dataclass(frozen=True)
class Summary(Memory):
    """c, and what it adds to the decoder's gates and to the readout."""

    summary_BH: Tensor
    gates_BG: Tensor
    readout_BX: Tensor


class FixedContext(Context):
    """The source as one vector c: where the encoder ended, or ``summary`` of that (Cho et al. 2014)."""

    def __init__(
        self, gates: GateInputs, readout: nn.Module, *, summary: nn.Module | None = None, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.to_gates, self.to_readout, self.summary, self.dropout = gates, readout, summary, dropout

    def remember(self, encoded: Encoded) -> Summary:
        """h_N, or tanh(V h_N), and its products."""
        last_BH = encoded.ends(0)
        summary_BH = self.dropout(last_BH if self.summary is None else torch.tanh(self.summary(last_BH)))
        return Summary(summary_BH, self.to_gates(summary_BH), self.to_readout(summary_BH))

    def first(self, memory: Memory) -> Tensor:
        """C."""
        assert isinstance(memory, Summary)
        return memory.summary_BH

    def over(self, memory: Memory, layout: Layout | None, rows: int) -> StepContext:
        """The same for every step."""
        assert isinstance(memory, Summary)
        return _FixedStepContext(
            memory.repeat(rows // memory.rows) if layout is None else memory.select(layout.sentences_N)
        )

    def over_all(self, memory: Memory) -> LoopContext:
        """The same for every position."""
        assert isinstance(memory, Summary)
        return _FixedLoopContext(memory)


class _FixedStepContext(StepContext):
    def __init__(self, rows: Summary) -> None:
        self.rows = rows

    def pending_gates(self, gates_NG: Tensor | None) -> Tensor:
        return self.rows.gates_BG

    def attend(self, hidden_NH: Tensor) -> ContextTerms:
        return ContextTerms(self.rows.gates_BG, self.rows.readout_BX, None)


class _FixedLoopContext(LoopContext):
    def __init__(self, memory: Summary) -> None:
        self.memory = memory

    def attend(self, hidden_BH: Tensor) -> None:
        pass

    def gates(self) -> Tensor:
        return self.memory.gates_BG

    def readouts(self) -> Tensor:
        return self.memory.readout_BX.unsqueeze(1)
