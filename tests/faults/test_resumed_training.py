"""Runs of every preset that are killed at drawn updates have, resumed, the tensors of undisturbed runs, to the bit.

``make test-all`` kills all of them; HYBRIDMT_SEED draws other updates.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from nmt_core.models.presets import PRESETS
from tests.differential.models import CONFIGS, LANGUAGE
from tests.faults.programs import begin
from tests.model_files import load_parameters

SEED = os.environ.get("HYBRIDMT_SEED", "1")
UPDATES, KILLS = 14, 2
_GIVEN = ("type", "source_characters", "target_characters")  # by the preset, or by the text


def write_run(folder: Path, preset: str, precision: str) -> str:
    """The settings of a short run in ``folder``, and its text; the command that trains it."""
    chance = random.Random(1)
    for name, count in (("train", 90), ("dev", 6)):
        words = [[f"w{chance.randrange(12)}" for _ in range(chance.randint(1, 6))] for _ in range(count)]
        (folder / f"{name}.s").write_text("".join(f"{' '.join(line)}\n" for line in words))
        (folder / f"{name}.t").write_text("".join(f"{' '.join(line[::-1])}\n" for line in words))
    language = preset in LANGUAGE
    sides = {"text": "train.t", "dev_text": "dev.t"}
    pairs = {"source": "train.s", "target": "train.t", "dev_source": "dev.s", "dev_target": "dev.t"}
    training = {"microbatches": 2, "window": 3, "validate_every": 4, "dev_beam": 1, "max_updates": UPDATES}
    training |= {"batch_tokens": 40} if preset == "cslm-cho2014" else {"batch_sentences": 6}
    settings: dict[str, Any] = {
        "folder": "run",
        "model": {"preset": preset, **_sizes(preset)},
        "data": sides if language else pairs,
        "training": {**training, "precision": precision},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))
    return "nmt-core train run.yaml --resume --quiet --device cpu"


def _sizes(preset: str) -> dict[str, Any]:
    """Those in which the small model differs from the preset's."""
    small, paper = CONFIGS[preset].to_mapping(), PRESETS[preset].to_mapping()
    return {name: value for name, value in small.items() if value != paper[name] and name not in _GIVEN}


def train(folder: Path, command: str, processes: int, dies: tuple[int, int] | None = None) -> list[int]:
    """Their exit codes; ``dies``: the number of a process, and the update behind which it is killed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    sizes = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    running = []
    for rank in range(processes):
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), **sizes, **common} if processes > 1 else {}
        dies_at = dies[1] if dies is not None and dies[0] == rank else None
        running.append(begin(folder, command.split(), dies_at=dies_at, environment=numbers))
    return [each.wait().code for each in running]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    """The state of the run, and the model that it leaves."""
    files = [load_file(folder / "run" / "training.safetensors"), load_parameters(folder / "run")]
    return {f"{number} {name}": tensor for number, file in enumerate(files) for name, tensor in file.items()}


def check(place: Path, preset: str, precision: str, processes: int) -> None:
    chance = random.Random(f"{SEED} {preset} {precision} {processes}")
    for name in ("whole", "killed"):
        (place / name).mkdir()
        command = write_run(place / name, preset, precision)
    assert train(place / "whole", command, processes) == [0] * processes
    for update in sorted(chance.sample(range(1, UPDATES), KILLS)):
        codes = train(place / "killed", command, processes, (chance.randrange(processes), update))
        assert -9 in codes, codes
    assert train(place / "killed", command, processes) == [0] * processes
    whole, killed = tensors(place / "whole"), tensors(place / "killed")
    assert whole.keys() == killed.keys()
    assert [name for name, tensor in whole.items() if not torch.equal(tensor, killed[name])] == []


def test_a_run_that_is_killed_twice_has_the_tensors_of_one_that_is_not(tmp_path: Path) -> None:
    check(tmp_path, "rnnsearch", "bfloat16", 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("preset", PRESETS)
def test_runs_of_all_presets_that_are_killed_have_the_tensors_of_others(
    tmp_path: Path, preset: str, precision: str, processes: int
) -> None:
    check(tmp_path, preset, precision, processes)
