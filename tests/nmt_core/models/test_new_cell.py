"""A cell from outside the package: one class and one name, and every model trains, is saved and searches with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nmt_core.base.errors import ConfigError
from nmt_core.inference.translator import Translator
from nmt_core.layers.cells import CELLS, Cell, Recurrence
from nmt_core.layers.init import Initialiser
from nmt_core.layers.products import shared_matrix
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import build_vocabulary

WORDS = build_vocabulary(["un deux trois"])
SIZES = {"embedding": 3, "hidden": 4, "alignment": 5, "maxout": 2}


class MinimalUnit(Cell):
    """h' = (1 - f) h + f tanh(x), with one gate f = sigmoid(x_f + U h)."""

    input_parts = 2
    biased_parts = 2

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.gate = nn.Parameter(torch.empty(hidden, hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        initialiser.recurrent(self.gate)

    def recurrence(self) -> Recurrence:
        gate = shared_matrix(self.gate)

        def step(word_N2H: torch.Tensor, state_NH: torch.Tensor, context_N2H: torch.Tensor | None) -> torch.Tensor:
            inputs_N2H = word_N2H if context_N2H is None else word_N2H + context_N2H
            candidate_NH, gate_NH = inputs_N2H.chunk(2, dim=1)
            return torch.lerp(state_NH, torch.tanh(candidate_NH), torch.sigmoid(gate_NH + gate(state_NH)))

        return step


def test_a_cell_from_outside_is_one_class_and_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="minimal"):
        RNNsearchConfig.from_mapping({"cell": "minimal", **SIZES}, origin="config.yaml")
    monkeypatch.setitem(CELLS, "minimal", MinimalUnit)
    config = RNNsearchConfig.from_mapping({"cell": "minimal", **SIZES}, origin="config.yaml")
    model = new_model(config, len(WORDS), len(WORDS), seed=3)
    save_model(str(tmp_path / "model"), model, WORDS, WORDS, FolderConfig(model=config))

    loaded = load_model(str(tmp_path / "model"))

    assert isinstance(loaded.model.encoder.unit, MinimalUnit)
    (found,) = Translator([loaded]).translate(["un deux"])
    assert found[0].score < 0
