"""A small corpus, and runs on it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from nmt_core.commands.main import main
from tests.model_files import load_parameters

WORDS = [f"w{number}" for number in range(12)]


class Runs:
    """Training runs in one folder, on sentences to be reversed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        generator = random.Random(1)
        for name, count in (("train", 240), ("other", 60), ("dev", 12), ("dev2", 9)):
            sources = [[generator.choice(WORDS) for _ in range(generator.randint(1, 6))] for _ in range(count)]
            (place / f"{name}.s").write_text("".join(" ".join(words) + "\n" for words in sources))
            (place / f"{name}.t").write_text("".join(" ".join(words[::-1]) + "\n" for words in sources))
            points = [" ".join(f"{n}-{len(words) - 1 - n}" for n in range(len(words))) for words in sources]
            (place / f"{name}.align").write_text("".join(f"{line}\n" for line in points))

    def file(self, name: str) -> str:
        return str(self.place / name)

    def write(
        self,
        folder: str,
        *,
        model: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        others: Mapping[str, Any] | None = None,
        **training: Any,
    ) -> str:
        """The settings of a run; other settings of the model, the data and the training on top, and ``others``."""
        sizes = {"hidden": 8, "embedding": 6, "alignment": 5, "maxout": 4, "dropout": 0.1, "initialisation": "glorot"}
        files = {
            "source": self.file("train.s"),
            "target": self.file("train.t"),
            "dev_source": self.file("dev.s"),
            "dev_target": self.file("dev.t"),
        }
        settings = {
            "folder": self.file(folder),
            "model": {"type": "rnnsearch", **sizes, **(model or {})},
            "data": {**files, **(data or {})},
            "training": {"batch_sentences": 10, "window": 3, "validate_every": 6, "dev_beam": 1, **training},
            **(others or {}),
        }
        path = self.place / f"{folder}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return str(path)

    def go_on(self, folder: str, *options: str) -> int:
        """Begin a run, or go on with it; its exit code."""
        settings = [part for option in options for part in ("--set", option)]
        return main(["train", self.file(f"{folder}.yaml"), "--quiet", "--device", "cpu", "--resume", *settings])

    def state(self, folder: str) -> dict[str, torch.Tensor]:
        return load_file(self.file(f"{folder}/training.safetensors"))

    def progress(self, folder: str) -> dict[str, Any]:
        counters: dict[str, Any] = json.loads(Path(self.file(f"{folder}/training.json")).read_text())
        return counters

    def model(self, folder: str) -> dict[str, torch.Tensor]:
        return load_parameters(self.file(folder))

    def assert_resumes_exactly(self, *options: str, updates: int = 31, **settings: Any) -> dict[str, torch.Tensor]:
        """A run that stops twice ends with the state of one that does not; the state."""
        for folder, stops in (("whole", [updates]), ("parts", [updates // 3, 2 * updates // 3, updates])):
            self.write(folder, **settings, max_updates=updates)
            for stop in stops:
                assert self.go_on(folder, *options, f"training.max_updates={stop}") == 0
        whole = self.state("whole")
        self.assert_equal(whole, self.state("parts"))
        return whole

    @staticmethod
    def assert_equal(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> None:
        assert one.keys() == other.keys()
        assert [name for name, tensor in one.items() if not torch.equal(tensor, other[name])] == []


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)
