"""Dropout between layers, of the same units at all positions, and of whole words."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from nmt_core.layers.cells import GRU, LSTM, Cell
from nmt_core.layers.dropout import BlockDropout
from nmt_core.layers.recurrent import Layers, Stack, UpperLayers, run_all


def test_variational_dropout_drops_the_same_units_at_all_positions() -> None:
    torch.manual_seed(1)
    found = BlockDropout(0.25, dim=1)(torch.ones(200, 3, 40))
    assert torch.equal(found[:, 0], found[:, 2])
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert found.mean().item() == pytest.approx(1.0, abs=0.02)


def test_word_dropout_drops_whole_words() -> None:
    torch.manual_seed(1)
    found = BlockDropout(0.25, dim=-1)(torch.ones(200, 40, 3))
    assert torch.equal(found[..., 0], found[..., 2])
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert found.mean().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("dropout", [BlockDropout(0.5, dim=1), BlockDropout(0.5, dim=-1)])
def test_outside_of_training_nothing_is_dropped(dropout: torch.nn.Module) -> None:
    inputs = torch.randn(4, 3, 2)
    assert torch.equal(dropout.eval()(inputs), inputs)


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
    torch.testing.assert_close(masked, cell(inputs_NG, state_NU))


def test_dropout_between_layers_is_of_what_a_layer_reads_from_below_alone() -> None:
    """Not of its own states (Zaremba et al. 2014): the same as a layer without dropout over what is left."""
    upper = UpperLayers(Layers(depth=2, dropout=0.5), 4)
    for parameter in upper.parameters():
        torch.nn.init.normal_(parameter)
    stack = Stack(GRU(4).inputs(4), GRU(4), upper)
    below_BTH, states = torch.randn(2, 3, 4), [torch.zeros(2, 4)]
    upper.train()
    torch.manual_seed(5)
    found_BTH, _ = stack.run_upper(below_BTH, states, run_all)
    upper.eval()
    torch.manual_seed(5)
    expected_BTH, _ = stack.run_upper(F.dropout(below_BTH, 0.5), states, run_all)
    assert torch.equal(found_BTH, expected_BTH)
    assert not torch.equal(found_BTH, stack.run_upper(below_BTH, states, run_all)[0])
