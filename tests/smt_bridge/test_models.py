"""Workers, devices and lists of neural models, without a model."""

from __future__ import annotations

import argparse
import importlib.util
import os
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError
from smt_bridge import models
from smt_bridge.models import ModelOptions, SearchOptions, count_jobs, list_devices, start_worker
from smt_bridge.nbest.entry import NbestEntry
from tests.fakes import LengthPairScorer


def arguments(devices: str = "cpu", jobs: int | None = None) -> argparse.Namespace:
    return argparse.Namespace(devices=devices, jobs=jobs, dtype="tf32", softmax="none")


def test_devices_are_named_with_commas() -> None:
    assert list_devices(arguments("cpu, cuda:12,auto")) == ["cpu", "cuda:12", "auto"]
    for given, wrong in (("cpu,tpu", "tpu"), ("cuda:1000", "cuda:1000"), ("cpu,", "")):
        with pytest.raises(ConfigError) as caught:
            list_devices(arguments(given))
        expected = f"expected auto, cpu, cuda or cuda:N, with commas, not '{wrong}'"
        assert str(caught.value) == f"--devices {given}: {expected}"


def test_workers_are_one_per_core_and_one_for_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 7})
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ctranslate2" else name)
    assert count_jobs(arguments(), ["model"]) == 5
    assert count_jobs(arguments(), ["model", "grpc:host:1"]) == 5
    assert count_jobs(arguments(), ["grpc:host:1"]) == 1
    assert count_jobs(arguments(jobs=3), ["grpc:host:1"]) == 3
    with pytest.raises(ModuleNotFoundError) as caught:
        count_jobs(arguments(jobs=3), ["model", "ct2:model"])
    assert caught.value.name == "ctranslate2"


def test_workers_take_devices_in_turn_and_one_thread_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    monkeypatch.setattr(models, "keep_memory_of_tensors", lambda: None)
    taken = [start_worker(arguments("cuda:4,cuda:7"), worker, ["model"]).device for worker in range(3)]
    assert taken == ["cuda:4", "cuda:7", "cuda:4"] and threads == []
    assert start_worker(arguments(), 0, ["ct2:model"]) == ModelOptions("cpu", "tf32", "none", threads=1)
    assert threads == []
    start_worker(arguments(), 0, ["model"])
    assert threads == [1]


def test_one_thread_meanwhile() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with suppress(KeyError), models.one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_defaults() -> None:
    assert tuple(ModelOptions()) == ("auto", "float32", "full", 0)
    assert SearchOptions()._asdict() == {"beam": 12, "nbest": 12, "forbid_unknown": True}


def test_entries_of_a_list_have_six_decimals_and_no_separator() -> None:
    one = SimpleNamespace(text=" a ||| b ", log_prob=-1.23456789, score=-0.98765432)
    expected = NbestEntry(3, b"a &#124;&#124;&#124; b", {"NMT0": (-1.234568,)}, -0.987654, 1)
    assert models.nbest_entries(3, [one, one], str) == [expected, expected._replace(line=2)]


def test_a_model_elsewhere_does_not_know_the_languages() -> None:
    scorer: Any = LengthPairScorer()
    with pytest.raises(ConfigError) as caught:
        models._Elsewhere(scorer, None).own_text()
    problem = "--raw needs --preparation, or a model that is no server's, which has the languages"
    assert str(caught.value) == problem
