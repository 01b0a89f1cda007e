"""Actors of Ray: lost ones, ones that differ, and items that end every worker; and the same with Ray itself."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import NmtError
from nmt_core.commands.main import main as nmt_core
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Result
from nmt_core.jobs.ray_workers import Ray, ray_workers
from nmt_core.jobs.run import Job, run_job
from nmt_core.jobs.workers import Workers
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main as smt_bridge
from tests.fake_ray import FakeRay


class Capitals:
    """Writes items in capitals."""

    def __init__(self, number: int, *, versions: Sequence[str] = ("1",) * 100) -> None:
        self.description = {"version": versions[number]}

    def __call__(self, item: str) -> str:
        if item == "bad":
            raise NmtError("it is bad")
        return item.upper()


ITEMS = [f"item {number}" for number in range(30)]


@contextlib.contextmanager
def actors(
    monkeypatch: pytest.MonkeyPatch, dies: Callable[[int, Any], bool] = lambda *_: False, jobs: int = 2, **options: Any
) -> Iterator[Workers]:
    monkeypatch.setitem(sys.modules, "ray", FakeRay(dies))
    with ray_workers(partial(Capitals, **options), jobs, Ray(0, None)) as workers:
        yield workers


def answers(workers: Workers, items: Iterable[str]) -> list[str]:
    return list(workers.answers(items))


def test_answers_come_in_order_whoever_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: set[str] = set()

    def dies(_: int, item: str) -> bool:
        first = item in ("item 0", "item 7", "item 8", "item 29") and item not in lost
        lost.add(item)
        return first

    with actors(monkeypatch, dies, jobs=3) as workers:
        assert answers(workers, ITEMS) == [item.upper() for item in ITEMS]
        assert answers(workers, ITEMS[:2]) == ["ITEM 0", "ITEM 1"]
    assert sys.modules["ray"].losses == 4  # type: ignore[attr-defined]
    assert sys.modules["ray"].is_shut_down  # type: ignore[attr-defined]


def test_few_items_are_taken_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def items() -> Iterator[str]:
        for number in range(100):
            taken.append(number)
            yield str(number)

    with actors(monkeypatch) as workers:
        assert workers.ahead == 4
        for number, _ in enumerate(workers.answers(items())):
            assert len(taken) <= number + 1 + 4 * 2


def test_an_item_that_ends_every_worker_is_named_after_three(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part(str):
        first = 1001

    does = r"has ended its worker 3 times \(out of memory\?\); what is finished stays finished"
    remedy = "start the same command again, with fewer --jobs"
    for kind, named in ((Part, "the shard that begins at line 1,001"), (str, "item 6")):
        with (
            actors(monkeypatch, lambda _, item: item == "item 5") as workers,
            pytest.raises(NmtError, match=f"^{named} {does}: {remedy}$"),
        ):
            answers(workers, map(kind, ITEMS))
    assert sys.modules["ray"].losses == 3  # type: ignore[attr-defined]


def test_an_error_of_a_worker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with actors(monkeypatch) as workers, pytest.raises(NmtError, match="it is bad"):
        answers(workers, ["good", "bad"])


def test_workers_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        actors(monkeypatch, versions=["cpu:AVX512", "cpu:AVX2"]) as workers,
        pytest.raises(NmtError, match=r"two workers differ.*AVX.*AVX"),
    ):
        answers(workers, itertools.cycle(ITEMS))  # until both have been asked


def test_workers_that_never_begin_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(FakeRay, "wait", lambda _, references, timeout: (waited.append(timeout), references))
    problem = r"^no worker began within 10 minutes; has the cluster a CPU and memory free\?$"
    with pytest.raises(NmtError, match=problem), actors(monkeypatch):
        pass
    assert waited == [600]


@pytest.mark.parametrize("failures", [2, 3])
def test_ray_is_begun_for_the_command_alone_in_three_tries(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    calls: list[dict[str, Any]] = []

    def init(_: FakeRay, **options: Any) -> None:
        calls.append(options)
        if len(calls) <= failures:
            raise RuntimeError("too slow\nat all")

    def remote(_: FakeRay, **options: Any) -> None:
        raise NmtError(str(options))

    monkeypatch.setattr(FakeRay, "init", init)
    monkeypatch.setattr(FakeRay, "remote", remote)
    problem = r"Ray did not begin, tried 3 times \(too slow\); is the machine too busy\? --engine local needs no Ray$"
    actor = r"^\{'num_cpus': 1, 'num_gpus': 0, 'max_restarts': 100\}$"
    with pytest.raises(NmtError, match=problem if failures == 3 else actor), actors(monkeypatch):
        pass
    local = {"address": "local", "num_cpus": 2, "include_dashboard": False, "object_store_memory": 256 << 20}
    assert calls == [local | {"log_to_driver": False, "logging_level": "ERROR"}] * 3


def rescore(*options: str) -> int:
    return smt_bridge(["rescore-table", "table", "--scorer", "none", "--output", "out", *options])


def test_without_ray_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    (tmp_path / "table").write_text("a ||| b ||| 0.5\n")
    monkeypatch.chdir(tmp_path)
    load = builtins.__import__

    def missing(name: str, *args: Any, **options: Any) -> Any:
        if name == "ray":
            raise ModuleNotFoundError(name, name=name)
        return load(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert error_line(rescore, "--engine", "ray").endswith("pip install 'hybridmt[ray]'")


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "[127.0.0.1]:9"])
def test_an_address_where_nobody_answers_is_one_line(address: str) -> None:
    there = ray_workers(partial(open_shouting, ""), 1, Ray(0, address))
    problem = rf"^--engine ray,address={re.escape(address)}: no Ray cluster answers \(.*refused\)$"
    with pytest.raises(NmtError, match=problem), there:
        pass


# --- with Ray


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_ray_translates_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    words = Vocabulary([*SPECIAL_WORDS, *"abcdef"])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    model = new_model(config, len(words), len(words), seed=1)
    save_model(str(tmp_path / "model"), model, words, words, FolderConfig(model=config))
    (tmp_path / "in").write_text("".join(f"{'abcdef'[n % 6]} b c\n" for n in range(30)))
    options = ["--model", str(tmp_path / "model"), "--input", str(tmp_path / "in"), "--window", "4", "--nbest", "3"]
    found = {}
    for name, engine in (("one", []), ("ray", ["--engine", "ray", "--jobs", "2"])):
        paths = [str(tmp_path / name), str(tmp_path / f"{name}.points")]
        assert nmt_core(["decode", *options, *engine, "--output", paths[0], "--alignments", paths[1]]) == 0
        found[name] = [Path(path).read_bytes() for path in paths]
    assert found["one"] == found["ray"]


class Shouting:
    """Writes lines in capitals; ends its process where a line says so, the first time or always."""

    def __init__(self, folder: str) -> None:
        self.description: dict[str, Any] = {"shouting": "1"}
        self.folder = Path(folder)

    def __call__(self, item: tuple[int, list[bytes]]) -> Result:
        lines = item[1]
        once = self.folder / "once"
        if b"poison" in lines or (b"die once" in lines and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Result((b"".join(line.upper() + b"\n" for line in lines),), {"lines": len(lines)})


def read_threes(path: str) -> Iterator[tuple[Shard, tuple[int, list[bytes]]]]:
    lines = Path(path).read_bytes().splitlines()
    for first in range(0, len(lines), 3):
        part = lines[first : first + 3]
        yield Shard.of(first + 1, b"\n".join(part)), (first + 1, part)


class Waiting(Shouting):
    """Shouting, and with the first line "wait" it writes where it is and waits for the end of its machine."""

    def __call__(self, item: tuple[int, list[bytes]]) -> Result:
        if b"wait" in item[1] and not (self.folder / "once").exists():
            import ray

            written = self.folder / "once.part"
            written.write_text(ray.get_runtime_context().get_node_id())
            written.rename(self.folder / "once")
            while True:
                time.sleep(60)
        return super().__call__(item)


def job_in(folder: str) -> Job:
    path = f"{folder}/in"
    return Job(path, partial(read_threes, path), (f"{folder}/out",), {}, {"in": path}, journaled=True)


def open_shouting(folder: str, number: int) -> Any:
    return Shouting(folder)


def open_waiting(folder: str, number: int) -> Any:
    return Waiting(folder)


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_ray_makes_the_same_bytes_through_lost_actors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    lines = [b"line %d" % number for number in range(30)]
    lines[13] = b"die once"
    (tmp_path / "in").write_bytes(b"".join(line + b"\n" for line in lines))
    opened, shared_out = partial(open_shouting, str(tmp_path)), {"jobs": 2, "ray": Ray(0, None)}
    assert run_job(job_in(str(tmp_path)), opened, **shared_out) is not None
    assert (tmp_path / "once").exists()
    assert (tmp_path / "out").read_bytes() == b"".join(line.upper() + b"\n" for line in lines)
    lines[20] = b"poison"
    (tmp_path / "in").write_bytes(b"".join(line + b"\n" for line in lines))
    with pytest.raises(NmtError, match="item 7 has ended its worker 3 times"):
        run_job(job_in(str(tmp_path)), opened, **shared_out)
    assert (tmp_path / ".out.hybridmt.journal").read_bytes().count(b"\n") >= 6


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_ray_makes_the_same_bytes_through_a_lost_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    lines = [b"line %d" % number for number in range(60)]
    lines[13] = b"wait"
    (tmp_path / "in").write_bytes(b"".join(line + b"\n" for line in lines))
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [machines.add_node(num_cpus=1) for _ in range(2)]
    lost = []

    def lose() -> None:
        while not (tmp_path / "once").exists():
            time.sleep(0.1)
        lost.append((tmp_path / "once").read_text())
        machines.remove_node(next(node for node in nodes if node.node_id == lost[0]), allow_graceful=False)

    watching = threading.Thread(target=lose, daemon=True)
    watching.start()
    try:
        opened, ray_there = partial(open_waiting, str(tmp_path)), Ray(0, machines.address)
        assert run_job(job_in(str(tmp_path)), opened, jobs=2, ray=ray_there) is not None
    finally:
        machines.shutdown()
    assert len(lost) == 1
    assert (tmp_path / "out").read_bytes() == b"".join(line.upper() + b"\n" for line in lines)
