"""How many processes score, and where."""

from __future__ import annotations

import argparse
import os
from types import SimpleNamespace

import pytest
import torch

from nmt_core.errors import ConfigError
from smt_bridge.commands.scoring_options import add_scoring_arguments, count_jobs, scorer_options

GIB = 1 << 30


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_scoring_arguments(parser)
    return parser.parse_args(argv)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 16 cores and two GPUs of 80 and 20 GiB."""
    memory = {0: 80 * GIB, 1: 20 * GIB}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=memory[device.index])
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


def test_a_gpu_has_as_many_processes_as_keep_it_busy_and_fit_into_it(two_gpus: None) -> None:
    assert count_jobs(parsed("--devices", "cuda:0"), ["model"]) == 8
    assert count_jobs(parsed("--devices", "cuda:1"), ["model"]) == 2
    assert count_jobs(parsed("--devices", "cuda:0,cuda:1"), ["model"]) == 4
    assert count_jobs(parsed("--devices", "cuda:0", "--jobs", "7"), ["model"]) == 7
    assert [scorer_options(parsed("--devices", "cuda:0,cuda:1"), worker).device for worker in range(4)] == [
        "cuda:0", "cuda:1", "cuda:0", "cuda:1",
    ]  # fmt: skip


def test_no_more_processes_than_cores(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert count_jobs(parsed("--devices", "cuda:0"), ["model"]) == 3
    assert count_jobs(parsed("--devices", "cuda:0,cuda:1"), ["model"]) == 2
    assert count_jobs(parsed("--devices", "cpu"), ["model"]) == 3


def test_a_gpu_that_is_not_there_is_told(two_gpus: None) -> None:
    with pytest.raises(ConfigError, match="this machine has 2 GPUs"):
        count_jobs(parsed("--devices", "cuda:5"), ["model"])


def test_servers_need_one_process() -> None:
    assert count_jobs(parsed(), ["grpc:host:1"]) == count_jobs(parsed(), []) == 1
    with pytest.raises(ConfigError, match="at least 1"):
        count_jobs(parsed("--jobs", "0"), ["model"])
