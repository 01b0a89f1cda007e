"""The machine on which the steps run, and how fast it trains: measured once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from nmt_core.base.errors import InputError
from nmt_core.device import has_bfloat16

_WORDS_A_SECOND = re.compile(r" ([0-9,]+) words/s")
_LIMIT = "training.max_minutes=5"  # so that a training ends where this program was killed by `kill -9`
_READINGS = 3  # lines of a training log: one in ten seconds, the first of which has slow first updates


class Machine(NamedTuple):
    """Cores that this process may use, free memory and disk in bytes, and the first GPU, "" for none."""

    cores: int
    memory: int
    disk: int
    gpu: str
    bfloat16: bool

    @property
    def streams(self) -> int:
        """How many steps run at once: two trainings on a core each are faster than one on two; a GPU has one."""
        return 2 if self.cores > 1 and not self.gpu else 1

    @property
    def threads(self) -> int:
        """Threads of a step."""
        return max(1, self.cores // self.streams)

    @property
    def jobs(self) -> int:
        """Processes of a step that runs models: one on a GPU, where each would load them again."""
        return 1 if self.gpu else self.threads


def look_at_machine(folder: Path) -> Machine:
    """This machine, with the disk of ``folder``."""
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    found = re.search(r"MemAvailable: +(\d+) kB", meminfo.read_text()) if meminfo.is_file() else None
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        memory=int(found[1]) * 1024 if found else memory,
        disk=shutil.disk_usage(folder).free,
        gpu=gpu,
        bfloat16=bool(gpu) or has_bfloat16(),
    )


def measure_speed(settings: Sequence[str], folder: Path, *, threads: int) -> float:
    """Target words a second in training; of several ``settings``, which train at once, the mean. Takes half a minute.

    Files of settings and what the trainings write lie in ``folder``. Raises InputError where one ends.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "nmt_core", "train", "--set", _LIMIT]
    trainings = [
        subprocess.Popen([*command, name], cwd=folder, stderr=subprocess.PIPE, env=environment, text=True)
        for name in settings
    ]
    try:
        speeds = [_speed(training, name) for training, name in zip(trainings, settings, strict=True)]
    finally:
        for training in trainings:
            training.kill()
            training.wait()
    return sum(speeds) / len(speeds)


def _speed(training: subprocess.Popen[str], name: str) -> float:
    """Words a second of the readings behind the first."""
    assert training.stderr is not None
    readings: list[float] = []
    said = ""
    for line in training.stderr:
        said = line.strip() or said
        found = _WORDS_A_SECOND.search(line)
        if found:
            readings.append(float(found[1].replace(",", "")))
        if len(readings) == _READINGS:
            return sum(readings[1:]) / (_READINGS - 1)
    if readings:  # a corpus so small that the training has ended
        return readings[-1]
    raise InputError(name, f"the training by which the speed is measured ended: {said}")
