"""Where a training run stands, so that it can go on as if it had never stopped.

One file, replaced atomically: parameters, what the optimiser keeps of each (moments, averages) and the
random state as tensors, and the counters as JSON in the header. ``training.json`` shows the same counters to
people.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from nmt_core.errors import ModelError
from nmt_core.files import open_output
from nmt_core.models.checkpoint import load_tensors, save_tensors
from nmt_core.training.identity import RunIdentity
from nmt_core.training.task import Cursor
from nmt_core.training.validation import Measured, Validation

TENSORS = "training.safetensors"
COUNTERS = "training.json"


@dataclass(frozen=True)
class Progress:
    """The counters of a run. ``cursors`` say by name how far the tasks are, ``epochs`` how far the first is.

    ``best`` is the best validation of the run itself; ``kept`` is that of the model in the folder, which may
    be an average, and is replaced by a better one only. ``skipped`` updates in a row were left out.
    """

    update: int = 0
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    epochs: float = 0.0
    seconds: float = 0.0
    learning_rate: float = 0.0
    best: Validation | None = None
    kept: Validation | None = None
    since_best: int = 0
    since_decay: int = 0
    skipped: int = 0
    history: tuple[Validation, ...] = field(default=())


def save_state(
    folder: str,
    trained: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    run: RunIdentity,
) -> None:
    """Write the state of a run; ``run`` identifies settings and data, and must be the same on resuming.

    ``trained`` are the parameters of all tasks by name.
    """
    tensors: dict[str, Tensor] = {"random": torch.get_rng_state()}
    device = next(iter(trained.values())).device
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    for name, parameter in trained.items():
        tensors[f"parameter.{name}"] = parameter.detach().cpu()
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{key}.{name}"] = value.detach().cpu()
    counters = json.dumps(dataclasses.asdict(progress))
    save_tensors(
        os.path.join(folder, TENSORS),
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        {"progress": counters, "run": run.to_json()},
    )
    with open_output(os.path.join(folder, COUNTERS)) as stream:
        stream.write(json.dumps(json.loads(counters), indent=1).encode() + b"\n")


def restore_state(
    folder: str, trained: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer, run: RunIdentity
) -> Progress:
    """Put a saved state back into parameters and optimiser; the counters.

    Raises ModelError if it is of another run.
    """
    path = os.path.join(folder, TENSORS)
    tensors = load_tensors(path)
    with safe_open(path, framework="pt") as header:
        metadata = header.metadata()
    different = run.difference(metadata["run"])
    if different is not None:
        raise ModelError(
            f"{path}: belongs to another run: {different}; "
            "resume with what it was started with, or train into another folder"
        )
    kept: dict[str, dict[str, Tensor]] = {name: {} for name in trained}
    for key, tensor in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimizer":
            moment, _, name = rest.partition(".")
            kept[name][moment] = tensor
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(tensors[f"parameter.{name}"])
            optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in kept[name].items()}
    torch.set_rng_state(tensors["random"])
    if "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], next(iter(trained.values())).device)
    return _progress(json.loads(metadata["progress"]))


def has_state(folder: str) -> bool:
    """Whether a run was interrupted in ``folder``."""
    return os.path.exists(os.path.join(folder, TENSORS))


def size_of_state(trained: Mapping[str, nn.Parameter]) -> int:
    """Bytes that a run writes at most before it removes anything: state and model, each beside the one before."""
    parameters = sum(parameter.numel() * parameter.itemsize for parameter in trained.values())
    return 2 * 5 * parameters  # parameters, two moments, an average; and the model


def _progress(mapping: dict[str, Any]) -> Progress:
    cursors = {name: Cursor(**cursor) for name, cursor in mapping.pop("cursors").items()}
    best, kept = (_validation(mapping.pop(key)) for key in ("best", "kept"))
    history = tuple(Validation(**_entry(entry)) for entry in mapping.pop("history"))
    return Progress(**mapping, cursors=cursors, best=best, kept=kept, history=history)


def _validation(entry: dict[str, Any] | None) -> Validation | None:
    return None if entry is None else Validation(**_entry(entry))


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "others": tuple(Measured(**other) for other in entry["others"])}
