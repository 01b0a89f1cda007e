"""Where a training run stands, so that it can go on as if it had never stopped.

One file, replaced as a whole: parameters, the optimiser's moments and the random state as tensors,
and the counters as JSON in the header. ``training.json`` says the same counters to people.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from nmt_core.errors import ModelError
from nmt_core.files import open_output
from nmt_core.models.checkpoint import load_tensors, save_tensors
from nmt_core.models.interface import TranslationModel
from nmt_core.training.validation import Validation

TENSORS = "training.safetensors"
COUNTERS = "training.json"


@dataclass(frozen=True)
class Progress:
    """The counters of a run: ``batch`` minibatches of ``epoch`` (from 0) are behind it."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    learning_rate: float = 0.0
    best: Validation | None = None
    since_best: int = 0
    since_decay: int = 0
    skipped: int = 0
    history: tuple[Validation, ...] = field(default=())


def save_state(
    folder: str, model: TranslationModel, optimizer: torch.optim.Optimizer, progress: Progress, run: str
) -> None:
    """Write the state of a run; ``run`` identifies settings and data, and must be the same on resuming."""
    os.makedirs(folder, exist_ok=True)  # nothing may have been saved yet
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    tensors: dict[str, Tensor] = {"random": torch.get_rng_state()}
    if model.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(model.device)
    for parameter in model.parameters():
        name = names[id(parameter)]
        tensors[f"parameter.{name}"] = parameter.detach().cpu()
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{key}.{name}"] = value.detach().cpu()
    counters = json.dumps(dataclasses.asdict(progress))
    save_tensors(
        os.path.join(folder, TENSORS),
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        {"progress": counters, "run": run},
    )
    with open_output(os.path.join(folder, COUNTERS)) as stream:
        stream.write(json.dumps(json.loads(counters), indent=1).encode() + b"\n")


def restore_state(folder: str, model: TranslationModel, optimizer: torch.optim.Optimizer, run: str) -> Progress:
    """Put a saved state back into model and optimiser; the counters. Raises ModelError if it is of another run."""
    path = os.path.join(folder, TENSORS)
    tensors = load_tensors(path)
    with safe_open(path, framework="pt") as header:
        metadata = header.metadata()
    if metadata["run"] != run:
        raise ModelError(
            f"{path}: belongs to a run with other settings or other data; "
            "resume with the settings it was started with, or train into another folder"
        )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"parameter.{name}"])
            moments = {
                key.split(".", 2)[1]: tensors[key]
                for key in tensors
                if key.startswith("optimizer.") and key.split(".", 2)[2] == name
            }
            optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in moments.items()}
    torch.set_rng_state(tensors["random"])
    if "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], model.device)
    return _progress(json.loads(metadata["progress"]))


def has_state(folder: str) -> bool:
    """Whether a run was interrupted in ``folder``."""
    return os.path.exists(os.path.join(folder, TENSORS))


def _progress(mapping: dict[str, Any]) -> Progress:
    best, history = mapping.pop("best"), mapping.pop("history")
    return Progress(
        **mapping,
        best=Validation(**best) if isinstance(best, dict) else None,
        history=tuple(Validation(**entry) for entry in history),
    )
