"""Training that several processes share: the same numbers for any of them, and what is told when one is lost."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.commands.main import main
from nmt_core.training import processes, trainer
from nmt_core.training.config import TrainingConfig
from nmt_core.training.processes import OrderedSum, Ranks, SharedSum, is_restarted, joined, ranks_of_torchrun
from nmt_core.training.run import _check_processes, _device


def ordered_sum(vectors: list[np.ndarray]) -> np.ndarray:
    """Neighbours in pairs as often as their number is even, then from left to right."""
    while len(vectors) > 1 and len(vectors) % 2 == 0:
        vectors = [one + other for one, other in zip(vectors[::2], vectors[1::2], strict=True)]
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return total


def added(vectors: list[torch.Tensor]) -> torch.Tensor:
    total = OrderedSum(len(vectors))
    for vector in vectors:
        total.add(vector.clone())
    return total.finish()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 8, 12])
def test_sums_have_the_same_bits_however_they_are_shared(count: int) -> None:
    vectors = list(torch.randn(count, 1000, generator=torch.Generator().manual_seed(count)))
    expected = ordered_sum([vector.numpy() for vector in vectors])
    assert np.array_equal(added(vectors).numpy(), expected)
    for size in range(1, count + 1):
        each = count // size
        if count % size == 0 and each & (each - 1) == 0:
            shares = [vectors[share.start : share.stop] for share in (Ranks(r, size).share(count) for r in range(size))]
            assert np.array_equal(added([added(share) for share in shares]).numpy(), expected), size


def test_a_sum_takes_no_memory_but_that_of_the_first_vector() -> None:
    for count in range(1, 9):
        vectors = torch.ones(count, 3)
        total = OrderedSum(count)
        for vector in vectors:
            total.add(vector)
        assert total.finish().data_ptr() == vectors.data_ptr(), count


def share_sums(rank: int, size: int, meeting: str) -> None:
    """What each process does: the others' numbers come by memory and by the network."""
    with joined(Ranks(rank, size), cuda=False, meeting=meeting) as ranks:
        shared = SharedSum(ranks)
        for number, length in enumerate((7, 1, 1001, 1001, 500, 2)):  # buffers that grow, and are written again
            vectors = torch.randn(size, length, generator=torch.Generator().manual_seed(number))
            buffer = shared.buffer(length, torch.float32)
            buffer.copy_(vectors[rank])
            over_the_network = ranks.total(vectors[rank])
            total = added(list(vectors))
            assert torch.equal(shared.total(length), total)
            assert torch.equal(over_the_network, total)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_memory_and_network_give_every_process_the_same_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    programs = [context.Process(target=share_sums, args=(rank, 3, f"file://{tmp_path}/meeting")) for rank in range(3)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    assert [program.exitcode for program in programs] == [0, 0, 0]


def train(runs: Any, folder: str, processes: int, *options: str) -> int:
    settings = [part for option in options for part in ("--set", option)]
    command = ["train", runs.file(f"{folder}.yaml"), "--device", "cpu", "--resume", "--quiet"]
    return main([*command, "--processes", str(processes), *settings])


def assert_same_state(runs: Any, one: str, other: str) -> None:
    runs.assert_equal(runs.state(one), runs.state(other))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_one_two_and_four_processes_train_the_same_model(runs: Any) -> None:
    settings = {
        "microbatches": 4,
        "update_every": 2,
        "window": 9,  # so that an epoch ends in an update of which some processes have nothing
        "batch_sentences": 4,
        "optimizer": "adam",
        "learning_rate": 0.01,
        "gradient": "word",
        "partition_words": 14,
        "freeze_embeddings_after": 12,
        "select_by": "nll",
    }
    for name in ("whole", "parts"):
        runs.write(name, max_updates=18, **settings)
    assert train(runs, "whole", 1) == 0
    assert train(runs, "parts", 2, "training.max_updates=5") == 0
    assert train(runs, "parts", 1, "training.max_updates=11") == 0
    assert train(runs, "parts", 4) == 0
    assert_same_state(runs, "whole", "parts")


@pytest.mark.slow
@pytest.mark.timeout(900)  # processes that load PyTorch, on a busy machine
def test_a_lost_process_is_one_line_and_the_run_goes_on(
    runs: Any, capfd: pytest.CaptureFixture[str], error_line: Callable[..., str]
) -> None:
    for name in ("whole", "lost"):
        runs.write(name, microbatches=2, max_updates=30, validate_every=5, select_by="nll")
    assert train(runs, "whole", 1) == 0
    assert capfd.readouterr().err == ""

    def kill() -> None:
        while not os.path.exists(runs.file("lost/training.safetensors")):
            time.sleep(0.005)
        (follower,) = multiprocessing.active_children()
        assert follower.pid is not None
        os.kill(follower.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    line = error_line(train, runs, "lost", 2, "training.max_updates=100000", "training.max_minutes=5")
    killer.join()
    assert "process 2 of 2 was ended by signal 9 (out of memory?); --resume goes on from the last saved state" in line
    assert not multiprocessing.active_children()
    saved = int(runs.progress("lost")["update"])
    assert saved > 0
    assert train(runs, "lost", 1, f"training.max_updates={max(saved, 30)}") == 0
    assert train(runs, "whole", 1, f"training.max_updates={max(saved, 30)}") == 0
    assert_same_state(runs, "whole", "lost")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_a_process_that_starts_when_the_first_one_was_killed_ends_silently(capfd: pytest.CaptureFixture[str]) -> None:
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    arguments = (Ranks(1, 2, 1), len, False, "file:///nowhere/meeting", theirs)
    process = multiprocessing.get_context("spawn").Process(target=processes._follow, args=arguments)
    process.start()
    theirs.close()
    process.join()
    assert (process.exitcode, capfd.readouterr().err) == (1, "")


@pytest.mark.parametrize(
    ("processes", "microbatches", "message"),
    [
        ("3", 4, "training.microbatches 4 cannot be shared by 3 processes; take 1 or 2 or 4"),
        ("2", 1, "training.microbatches 1 cannot be shared by 2 processes; take 1, or other microbatches"),
        ("4", 12, "take 1 or 3 or 6 or 12"),
        ("3", 4096, "take 1 or 2 or 4 or 8 or"),
    ],
)
def test_processes_that_cannot_share_are_refused(
    runs: Any, error_line: Callable[..., str], processes: str, microbatches: int, message: str
) -> None:
    path = runs.write("run", microbatches=microbatches, max_updates=1)
    assert message in error_line(main, ["train", path, "--device", "cpu", "--processes", processes])
    assert not os.path.exists(runs.file("run"))


def test_processes_of_torchrun_or_of_a_gpu_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torchrun = "--processes: torchrun has started the processes; leave it out"
    own = "--device cuda:1: every process takes a GPU of its own; give --device cuda"
    for count, device, begun, problem in (
        (1, "cpu", True, torchrun), (2, "cuda:1", False, own), (1, "cuda:1", False, None), (None, "cpu", True, None)
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"^{problem}$") if problem else contextlib.nullcontext():
            _check_processes(argparse.Namespace(processes=count, device=device), started=begun)
    for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    assert (ranks_of_torchrun(), is_restarted()) == (None, False)
    for count in "01":
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
        assert is_restarted() == (count == "1")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "x" if name == "RANK" else "0")
    assert ranks_of_torchrun() is None


def test_why_a_process_ended_is_in_its_own_words_or_its_signal() -> None:
    def follower(code: int, *words: str) -> Any:
        left, ours = [*words], SimpleNamespace(poll=lambda: bool(left), recv=lambda: left.pop(0))
        return SimpleNamespace(process=SimpleNamespace(exitcode=code), words=ours)

    killed = "process 3 of 3 was ended by signal 9 (out of memory?); --resume goes on from the last saved state"
    assert processes._cause([follower(0, ""), follower(-9, "")]) == killed
    assert processes._cause([follower(1, "", "no space"), follower(-9)]) == "process 2 of 3: no space"
    assert processes._cause([follower(1, "")]) == ""


@pytest.mark.parametrize(("microbatches", "named", "threads"), [(2, None, 1), (2, "3", 3), (1, None, 3)])
def test_microbatches_are_computed_by_one_thread_unless_the_user_says_how_many(
    microbatches: int, named: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if named is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", named)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    _device("cpu", TrainingConfig(microbatches=microbatches), Ranks())
    found = torch.get_num_threads()
    torch.set_num_threads(before)
    assert found == threads


@pytest.mark.parametrize(("size", "here", "one_machine"), [(4, 4, True), (4, 2, False)])
def test_processes_of_several_machines_read_the_text_for_themselves(
    monkeypatch: pytest.MonkeyPatch, size: int, here: int, one_machine: bool
) -> None:
    for name, number in (("RANK", 3), ("WORLD_SIZE", size), ("LOCAL_RANK", 1), ("LOCAL_WORLD_SIZE", here)):
        monkeypatch.setenv(name, str(number))
    monkeypatch.setattr(Ranks, "from_first", lambda *_: "of the first")
    monkeypatch.setattr(Ranks, "wait_for_all", lambda _: None)
    ranks = ranks_of_torchrun()
    assert ranks == Ranks(3, size, 1, one_machine)
    assert ranks.shared(lambda: "its own") == ("of the first" if one_machine else "its own")


def test_processes_that_have_come_apart_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gather(found: list[Any], own: str) -> None:
        found[:] = [own, own, "another"]

    monkeypatch.setattr(dist, "all_gather_object", gather)
    with pytest.raises(ModelError, match="process 3 of 3 has other parameters than the first"):
        Ranks(0, 3).check_alike("x", "has other parameters than the first")


def test_all_processes_save_at_the_same_updates_whatever_their_own_clocks_say(
    runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that saved alone would wait for the others for ever. Their common clock goes on by 7 s an update."""
    saved: dict[float, list[int]] = {}
    for pace in (0.0, 3.0):  # seconds that this process itself sees between two looks at its clock
        saves, common = saved.setdefault(pace, []), itertools.count(7.0, 7.0)
        clock = itertools.count(0.0, pace)
        monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda clock=clock: next(clock)))
        monkeypatch.setattr(Ranks, "most", lambda _, stops, __, common=common: (stops, next(common)))
        monkeypatch.setattr(trainer, "save_state", lambda *now, saves=saves: saves.append(now[3].update))
        runs.write(f"pace{pace}", max_updates=30, validate_every=8, select_by="nll", save_every=0.5)
        assert runs.go_on(f"pace{pace}") == 0
    assert saved[0.0] == saved[3.0]
    assert set(saved[0.0]) - {8, 16, 24, 30}
