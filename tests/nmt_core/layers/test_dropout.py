"""Dropout between layers, of the same units at all positions, and of whole words."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from nmt_core.layers.cells import GRU, LSTM, Cell
from nmt_core.layers.dropout import drop_along
from nmt_core.layers.recurrent import Layers, Stack, run_all


@pytest.mark.parametrize("dim", [1, -1])
def test_along_positions_or_units_all_are_dropped_or_none(dim: int) -> None:
    torch.manual_seed(1)
    found = drop_along(torch.ones(200, 30, 40), 0.25, dim=dim)
    assert torch.equal(found.select(dim, 0), found.select(dim, 2))
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert found.mean().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_masked_states_are_what_recurrent_matrices_read(kind: type[Cell]) -> None:
    """With the same units dropped at every step, the columns of these units might as well be zero."""
    torch.manual_seed(3)
    cell = kind(4).double()
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter)
    inputs_NG = torch.randn(2, cell.input_size, dtype=torch.float64)
    state_NU = torch.randn(2, cell.state_size, dtype=torch.float64)
    kept_H = torch.tensor([0.0, 2.0, 2.0, 0.0], dtype=torch.float64)
    masked = cell.recurrence(kept_H.expand(2, 4))(inputs_NG, state_NU, None)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(kept_H)
    torch.testing.assert_close(masked, cell.recurrence()(inputs_NG, state_NU, None))


def test_dropout_between_layers_is_of_what_a_layer_reads_from_below_alone() -> None:
    """Not of its own states (Zaremba et al. 2014): the same as a layer without dropout over what is left."""
    stack = Stack(Layers(depth=2, dropout=0.5), 4, 4)
    upper = stack.upper
    for parameter in upper.parameters():
        torch.nn.init.normal_(parameter)
    below_BTH, states = torch.randn(2, 3, 4), [torch.zeros(2, 4)]
    upper.train()
    torch.manual_seed(5)
    found_BTH, _ = stack.run_upper(below_BTH, states, run_all)
    upper.eval()
    torch.manual_seed(5)
    expected_BTH, _ = stack.run_upper(F.dropout(below_BTH, 0.5), states, run_all)
    assert torch.equal(found_BTH, expected_BTH)
    assert not torch.equal(found_BTH, stack.run_upper(below_BTH, states, run_all)[0])
