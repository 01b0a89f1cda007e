"""The model of Nematus: its unit is PyTorch's, gradients are those of its values, and it learns.

Its values beside the equations: ``tests/nmt_core/foreign/``; steps, forward pass, scorer and beam: ``test_parts``.
"""

from __future__ import annotations

import pytest
import torch

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import pad_pairs
from nmt_core.layers.init import initialise
from nmt_core.layers.losses import LossOptions
from nmt_core.layers.transition_gru import TransitionGRU
from nmt_core.models.build import build_model, new_model
from nmt_core.models.nematus import NematusConfig
from tests.nmt_core.models.finite_differences import assert_gradients

PAIRS = [([2, 3, 4, 5], [3, 2]), ([6], [4, 5, 6, 2, 3]), ([], [2]), ([5, 5, 2], [])]
CONFIGS = {
    "plain": NematusConfig(embedding=4, hidden=5),
    "deep": NematusConfig(embedding=4, hidden=5, encoder_transitions=2, decoder_transitions=3, tied=True),
    "parts": NematusConfig(embedding=4, hidden=5, encoder_transitions=2, normalisation="parts"),
    "whole": NematusConfig(embedding=4, hidden=5, encoder_transitions=2, normalisation="whole", shared_embeddings=True),
}


def test_the_unit_is_that_of_pytorch() -> None:
    torch.manual_seed(1)
    theirs, ours = torch.nn.GRUCell(4, 5).double(), TransitionGRU(5, ["reset"], "none")
    inputs = ours.inputs(4, bias=False)
    initialise(torch.nn.ModuleList([ours, inputs]), "glorot", seed=1)

    def in_our_order(stored: torch.Tensor) -> torch.Tensor:
        reset, update, new = stored.chunk(3)
        return torch.cat([new, update, reset])

    parameters = dict(ours.double().named_parameters())
    with torch.no_grad():
        theirs.bias_ih.zero_()
        inputs.double().weight.copy_(in_our_order(theirs.weight_ih))
        parameters["transitions.0.recurrent"].copy_(in_our_order(theirs.weight_hh))
        parameters["transitions.0.after.bias"].copy_(in_our_order(theirs.bias_hh))
        words, states = torch.randn(7, 4).double(), torch.randn(7, 5).double()
        torch.testing.assert_close(
            ours.recurrence()(inputs(words), states, None), theirs(words, states), rtol=0, atol=1e-14
        )


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_are_those_of_the_values(name: str) -> None:
    model = new_model(CONFIGS[name], 7, 7, seed=3).double().eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator))
    batch = pad_pairs(PAIRS)
    model(batch).sum().backward()
    parameters = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}

    def total() -> float:
        with torch.no_grad():
            return float(model(batch).sum())

    assert_gradients(model, parameters, total, rel=1e-4, abs=1e-7)


def test_it_learns_to_turn_words_round() -> None:
    config = CONFIGS["whole"].model_copy(
        update={"embedding": 12, "hidden": 16, "dropout": 0.1, "embedding_dropout": 0.1}
    )
    model = new_model(config, 7, 7, seed=3).train()
    texts = [[2, 3, 4], [5, 6], [3, 2, 6, 5], [4], [6, 4, 2]]
    batch = pad_pairs([(text, text[::-1]) for text in texts])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    torch.manual_seed(5)
    for _ in range(80):
        optimizer.zero_grad()
        model.loss(batch, LossOptions()).objective.backward()
        optimizer.step()
    assert model.eval()(batch).sum().item() > -3.0


def test_shared_vectors_need_one_vocabulary() -> None:
    problem = r"^model\.shared_embeddings: source and target need one vocabulary, found 7 and 8 words$"
    with pytest.raises(ConfigError, match=problem):
        build_model(CONFIGS["whole"], 7, 8)
