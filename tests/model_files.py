"""The file of a model's tensors, whatever its name is by now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.model_directory.settings import read_settings
from nmt_core.model_directory.tensors import read_tensors


def parameters_file(folder: str | Path) -> Path:
    """Where they are."""
    return Path(read_settings(str(folder)).path(str(folder), "model.safetensors"))


def load_parameters(folder: str | Path) -> dict[str, Tensor]:
    """The tensors by name."""
    return read_tensors(str(parameters_file(folder)))[0]


def open_pair_scorer(folders: Sequence[str]) -> ModelPairScorer:
    """The scorer of the models of these directories, on a CPU."""
    return ModelPairScorer([load_model(folder) for folder in folders])
