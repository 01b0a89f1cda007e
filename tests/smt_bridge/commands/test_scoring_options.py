"""How many processes score, and where."""

from __future__ import annotations

import argparse
import os

import pytest
import torch

from nmt_core.base.errors import ConfigError
from smt_bridge.commands.options import add_scoring_arguments
from smt_bridge.models import count_jobs, start_worker


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_scoring_arguments(parser)
    return parser.parse_args(argv)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three cores and two GPUs."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})


def test_a_gpu_has_one_process_and_a_core_too(two_gpus: None) -> None:
    """Several processes of a GPU only take turns."""
    assert count_jobs(parsed("--devices", "cuda:0"), ["model"]) == 1
    assert count_jobs(parsed("--devices", "cuda:0,cuda:1"), ["model"]) == 2
    assert count_jobs(parsed("--devices", "cuda:0", "--jobs", "7"), ["model"]) == 7
    assert count_jobs(parsed("--devices", "cpu"), ["model"]) == 3
    assert count_jobs(parsed("--devices", "cpu", "--jobs", "7"), ["model"]) == 7
    found = [start_worker(parsed("--devices", "cuda:0,cuda:1"), worker, ["model"]).device for worker in range(4)]
    assert found == ["cuda:0", "cuda:1"] * 2


def test_a_gpu_that_is_not_there_is_told(two_gpus: None) -> None:
    with pytest.raises(ConfigError, match="this machine has 2 GPUs"):
        count_jobs(parsed("--devices", "cuda:5"), ["model"])


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"]])
def test_every_device_of_the_list_is_looked_at(jobs: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"--devices cpu,nonsense:7: expected auto, cpu.* not 'nonsense:7'"):
        count_jobs(parsed("--devices", "cpu,nonsense:7", *jobs), ["model"])


def test_servers_need_one_process() -> None:
    assert count_jobs(parsed(), ["grpc:host:1"]) == count_jobs(parsed(), []) == 1
