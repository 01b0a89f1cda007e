"""Long jobs that are killed, stopped or find the disk full at drawn moments end, done again, with the same bytes.

``make test-all`` strikes every job HYBRIDMT_MOMENTS times in each way (20); HYBRIDMT_SEED draws other moments.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from safetensors.torch import load

from tests.faults.jobs import JOBS, LongJob
from tests.faults.programs import Ended, begin

SEED = os.environ.get("HYBRIDMT_SEED", "1")
MOMENTS = int(os.environ.get("HYBRIDMT_MOMENTS", "20"))
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM, "interrupted": signal.SIGINT}
FULL = "full disk"


class Undisturbed:
    """What a job makes when nothing happens, and the seconds of its commands."""

    def __init__(self, job: LongJob, models: Path, place: Path) -> None:
        self.job, self._inputs, self._place = job, place / "inputs", place
        self._inputs.mkdir()
        job.write(models, self._inputs)
        folder = self.folder("undisturbed")
        ended = [run(job, folder, command) for command in job.commands]
        assert [each.code for each in ended] == [0] * len(ended), ended
        self.seconds = [each.seconds for each in ended]
        self.files = files_in(folder)
        self.largest = max(len(content) for name, content in self.files.items() if not (self._inputs / name).exists())

    def folder(self, name: str) -> Path:
        """A new folder with the inputs."""
        return Path(shutil.copytree(self._inputs, self._place / name, symlinks=True))


def run(job: LongJob, folder: Path, command: str, *, limit: int | None = None) -> Ended:
    """A command of the job, to its end."""
    return begin(folder, command.split(), limit=limit, environment=job.environment).wait()


def files_in(folder: Path) -> dict[str, bytes]:
    """All files that are there, without the time that a run took."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): content_of(path) for path in paths}


def content_of(path: Path) -> bytes:
    """The bytes of a file; of a state of training its numbers."""
    content = path.read_bytes()
    if path.name == "training.safetensors":
        tensors = sorted(load(content).items())
        return b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in tensors)
    return re.sub(rb'"seconds": [0-9.e-]+', b"", content) if path.name == "training.json" else content


def struck(whole: Undisturbed, folder: Path, number: int, fault: str, chance: random.Random) -> bool:
    """Whether the fault came before the end of the command."""
    job, command = whole.job, whole.job.commands[number]
    if fault == FULL:
        ended = run(job, folder, command, limit=chance.randrange(whole.largest))
        assert ended.code in (0, 2), ended
        assert "Traceback" not in ended.errors
        return ended.code == 2
    program = begin(folder, command.split(), environment=job.environment)
    time.sleep(chance.uniform(0, whole.seconds[number]))
    program.send(SIGNALS[fault])
    return program.wait().code != 0


def strike(whole: Undisturbed, fault: str, moments: int, chance: random.Random) -> None:
    """Strike so many times, each in a folder of its own."""
    hits = attempts = 0
    while hits < moments:
        attempts += 1
        assert attempts <= 20 + 5 * moments, f"{hits} of {attempts - 1} attempts hit"
        folder = whole.folder(f"attempt{attempts}")
        (victim,) = chance.choices(range(len(whole.seconds)), whole.seconds)
        for number, command in enumerate(whole.job.commands):
            if number == victim:
                hits += struck(whole, folder, number, fault, chance)
                check_outputs(whole, folder)
            ended = run(whole.job, folder, command)
            assert ended.code == 0, ended
        assert_same(files_in(folder), whole.files)
        shutil.rmtree(folder)


def check_outputs(whole: Undisturbed, folder: Path) -> None:
    """Outputs that are there are complete."""
    for name in whole.job.outputs:
        assert not (folder / name).exists() or content_of(folder / name) == whole.files[name], name


def assert_same(found: Mapping[str, bytes], expected: Mapping[str, bytes]) -> None:
    assert found.keys() == expected.keys()
    assert [name for name, content in found.items() if content != expected[name]] == []


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_a_job_that_is_killed_goes_on_to_the_same_bytes(models: Path, tmp_path: Path) -> None:
    strike(Undisturbed(JOBS["decode"], models, tmp_path), "killed", 1, random.Random(SEED))


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("fault", [*SIGNALS, FULL])
@pytest.mark.parametrize("name", JOBS)
def test_jobs_that_are_struck_at_many_moments_go_on_to_the_same_bytes(
    models: Path, tmp_path: Path, name: str, fault: str
) -> None:
    strike(Undisturbed(JOBS[name], models, tmp_path), fault, MOMENTS, random.Random(f"{SEED} {name} {fault}"))
