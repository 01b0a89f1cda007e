"""Sums of gradients on GPUs: how long a process waits for one that is lost, and what ends then."""

from __future__ import annotations

import datetime
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from nmt_core.training import processes
from nmt_core.training.processes import Ranks, joined
from tests.pretended_gpu import PretendedGPU


def test_a_lost_process_is_waited_for_some_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for as long as a validation may take, which the others wait for on their CPUs."""
    made: list[dict[str, Any]] = []
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setattr(dist, "new_group", lambda **options: made.append(options) or "GPUs")
    for cuda in (False, True):
        with joined(Ranks(0, 1), cuda=cuda, meeting=f"file://{tmp_path}/{cuda}") as ranks:
            assert dist.get_backend() == "gloo"
            assert ranks.gpus == ("GPUs" if cuda else None)
    (options,) = made
    assert options["backend"] == "nccl"
    assert datetime.timedelta(minutes=1) <= options["timeout"] <= datetime.timedelta(minutes=30)


def test_vectors_are_added_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus: Any = "GPUs"
    groups = []

    def exchange(received: Tensor, sent: Tensor, group: Any = None) -> None:
        groups.append(group)
        received.copy_(sent if len(sent) == len(received) else torch.cat([sent, sent]))

    for name in ("all_to_all_single", "all_gather_single", "all_gather_into_tensor"):
        monkeypatch.setattr(dist, name, exchange, raising=False)
    with PretendedGPU() as gpu:
        for device in ("cpu", "cuda"):
            Ranks(0, 2, gpus=gpus).total(torch.ones(5, device=device))
        assert gpu.waits == 0
    assert groups == [None, None, "GPUs", "GPUs"]


class _Ended:
    """A process that ended early, without a word and without a signal."""

    exitcode = 1
    sentinel = 0

    def join(self, timeout: float | None = None) -> None:
        """It has ended."""


def test_the_first_process_ends_with_another_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that waits on a GPU does not notice that another has ended."""
    ended: list[int] = []
    process: Any = _Ended()
    words, theirs = processes.multiprocessing.Pipe()
    theirs.close()
    monkeypatch.setattr(processes, "_PATIENCE", 0.0)
    monkeypatch.setattr(processes, "wait", list)
    monkeypatch.setattr(processes.os, "_exit", ended.append)
    processes._end_with_the_others([processes._Follower(process, words)], threading.Event())
    assert ended == [2]
    assert "another process of this run has ended; --resume goes on" in capsys.readouterr().err
