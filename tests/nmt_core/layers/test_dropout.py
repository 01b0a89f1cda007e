"""Dropout between layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from nmt_core.layers.cells import GRU
from nmt_core.layers.recurrent import Layers, Stack, run_all


def test_dropout_between_layers_is_of_what_a_layer_reads_from_below_alone() -> None:
    """Not of its own states (Zaremba et al. 2014): the same as a layer without dropout over what is left."""
    torch.manual_seed(4)
    stack = Stack(Layers(GRU, depth=2, dropout=0.5), 4, 4)
    for parameter in (*stack.unit.parameters(), *stack.upper.parameters()):
        torch.nn.init.normal_(parameter)
    inputs_BTG, states_BU = torch.randn(2, 3, 12), torch.zeros(2, 8)
    (cell,), (inputs,) = stack.upper["cells"], stack.upper["inputs"]
    below_BTH = run_all(stack.unit.recurrence(), inputs_BTG, states_BU[:, :4])
    torch.manual_seed(5)
    expected_BTH = run_all(cell.recurrence(), inputs(F.dropout(below_BTH, 0.5)), states_BU[:, 4:])
    torch.manual_seed(5)
    found_BTH, _ = stack.run(inputs_BTG, states_BU, run_all)
    assert torch.equal(found_BTH, expected_BTH)
    stack.upper.eval()
    assert not torch.equal(found_BTH, stack.run(inputs_BTG, states_BU, run_all)[0])
