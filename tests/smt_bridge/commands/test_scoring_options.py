"""How many processes score, and where."""

from __future__ import annotations

import argparse
import importlib.util
import os

import pytest
import torch

from nmt_core.base.errors import ConfigError
from smt_bridge.commands.options import add_scoring_arguments
from smt_bridge.models import ModelOptions, count_jobs, list_devices, start_worker


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
    with pytest.raises(ConfigError, match=r"^--device cuda:5: this machine has 2 GPUs"):
        count_jobs(parsed("--devices", "cuda:5"), ["model"])


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"]])
@pytest.mark.parametrize("wrong", ["nonsense:7", "cuda:1000", ""])
def test_every_device_of_the_list_is_looked_at(jobs: list[str], wrong: str) -> None:
    expected = f"expected auto, cpu, cuda or cuda:N, with commas, not '{wrong}'"
    with pytest.raises(ConfigError, match=f"^--devices cpu,{wrong}: {expected}$"):
        count_jobs(parsed("--devices", f"cpu,{wrong}", *jobs), ["model"])
    assert list_devices(parsed("--devices", "cpu, cuda:12,auto")) == ["cpu", "cuda:12", "auto"]


def test_a_package_that_is_not_installed_is_named_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ctranslate2" else name)
    with pytest.raises(ModuleNotFoundError) as caught:
        count_jobs(parsed("--devices", "nonsense"), ["model", "ct2:model"])
    assert caught.value.name == "ctranslate2"


def test_a_worker_on_a_cpu_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    cpu = parsed("--devices", "cpu", "--dtype", "tf32", "--softmax", "none")
    assert start_worker(cpu, 0, ["ct2:model"]) == ModelOptions("cpu", "tf32", "none", threads=1)
    assert threads == []  # of PyTorch, which it does not need
    start_worker(cpu, 0, ["model"])
    assert threads == [1]


def test_servers_need_one_process() -> None:
    assert count_jobs(parsed(), ["grpc:host:1"]) == count_jobs(parsed(), []) == 1
