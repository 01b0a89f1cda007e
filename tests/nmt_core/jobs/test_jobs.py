"""Long jobs: killed anywhere, shared out or done at once, the output has the same bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nmt_core.commands.main import main as nmt_core
from nmt_core.errors import ConfigError, InputError, NmtError
from nmt_core.jobs import run as running
from nmt_core.jobs.folder import held_folder
from nmt_core.jobs.manifest import Input, Shard, parse_range, read_manifest, shard_of
from nmt_core.jobs.parts import Parts, Piece, Task
from nmt_core.jobs.run import Job, run_job
from nmt_core.jobs.workers import LocalWorkers
from smt_bridge.commands.main import main as smt_bridge

Lines = tuple[int, list[bytes]]


class Shouting:
    """Writes lines in capitals."""

    def __init__(self, number: int = 0, *, version: str = "1") -> None:
        self.description: dict[str, Any] = {"shouting": version}

    def __call__(self, item: Lines) -> Piece:
        lines = item[1]
        if b"poison" in lines:
            raise NmtError("a line is poison")
        return Piece(b"".join(line.upper() + b"\n" for line in lines), {"lines": len(lines)})


class Quitting(Shouting):
    """Dies where a line says so, as a process without memory does."""

    def __call__(self, item: Lines) -> Piece:
        if b"die" in item[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(item)


class OutOfMemoryError(RuntimeError):
    """Called as PyTorch's is."""


class Filling(Shouting):
    """Finds its GPU full where a line says so."""

    def __call__(self, item: Lines) -> Piece:
        if b"full" in item[1]:
            raise OutOfMemoryError("CUDA out of memory")
        return super().__call__(item)


def broken(number: int) -> Any:
    raise ConfigError("this worker cannot be made")


def read(path: str) -> Iterator[Lines]:
    """Three lines at a time."""
    lines = Path(path).read_bytes().splitlines()
    for first in range(0, len(lines), 3):
        yield first + 1, lines[first : first + 3]


def shard(item: Lines) -> Shard:
    first, lines = item
    return shard_of(first, b"\n".join(lines))


def nobody(what: str, lines: int) -> None:
    pass


def half() -> float:
    """Stands for how much of the input has been read."""
    return 0.5


def job_in(folder: Path, *, size: int = 0, share: Callable[[], float] | None = None) -> Job[Lines]:
    return Job(
        output=str(folder / "out"),
        description={"size": size, "options": {"loud": True, "fast": False}},
        source=Input(str(folder / "in"), partial(read, str(folder / "in")), shard, share),
        progress=nobody,
        record=str(folder / "out.json"),
    )


@pytest.fixture(params=[None, half], ids=["planned", "read once"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job[Lines]:
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))
    return job_in(tmp_path, share=request.param)


EXPECTED = b"".join(b"LINE %d\n" % number for number in range(10))


def opened(job: Job[Lines], number: int, *, kind: type[Shouting] = Shouting, version: str = "1") -> Any:
    return job.part_maker(kind(number, version=version))


def finish(
    job: Job[Lines], *, jobs: int = 1, kind: type[Shouting] = Shouting, version: str = "1", **options: Any
) -> Any:
    with LocalWorkers(partial(opened, job, kind=kind, version=version), jobs=jobs) as workers:
        return run_job(job, workers, **options)


def test_an_absurd_number_of_processes_is_refused() -> None:
    with pytest.raises(ConfigError, match="--jobs 999,999,999,999: at most 1,000 processes"):
        LocalWorkers(abs, 999_999_999_999)  # type: ignore[arg-type]  # which is not called


def test_the_output_is_that_of_all_shards_in_order(job: Job[Lines], tmp_path: Path) -> None:
    assert finish(job) == [{"lines": 3}, {"lines": 3}, {"lines": 3}, {"lines": 1}]
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


class Killed(BaseException):
    """Stands for the end of the program."""


def steps() -> list[str]:
    """Every call of a job that changes files, in its order."""
    return ["makedirs", "write_manifest", "_do_parts", "_make", "unlink", "fsync", "replace"]


@contextlib.contextmanager
def ended_at(monkeypatch: pytest.MonkeyPatch, step: str, times: int, *, before: bool) -> Iterator[None]:
    """The program ends at the call of a step that is number ``times``: before the call, or behind it."""
    place: Any = os if hasattr(os, step) and not hasattr(running, step) else running
    original: Callable[..., Any] = getattr(place, step)
    calls = 0

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == times and before:
            raise Killed
        result = original(*args, **kwargs)
        if calls == times:
            raise Killed
        return result

    with monkeypatch.context() as patch:
        patch.setattr(place, step, dying)
        yield


@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_step_it_goes_on_to_the_same_bytes(
    job: Job[Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, times: int, before: bool
) -> None:
    with ended_at(monkeypatch, step, times, before=before):
        try:
            finish(job)
        except Killed:
            assert not (tmp_path / "out").exists() or (tmp_path / "out").read_bytes() == EXPECTED
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED


class Echoing(Shouting):
    """Writes lines in small letters into another file."""

    def __call__(self, item: Lines) -> Piece:
        piece = super().__call__(item)
        return piece._replace(others=(piece.content.lower(),))


@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("times", [1, 3, 4, 7])
def test_a_job_of_two_files_killed_at_any_step_goes_on_to_the_same_bytes(
    job: Job[Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, times: int
) -> None:
    job = dataclasses.replace(job, others=(str(tmp_path / "folder" / "other"),))
    with ended_at(monkeypatch, step, times, before=True), contextlib.suppress(Killed):
        finish(job, kind=Echoing)
    assert finish(job, kind=Echoing) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert (tmp_path / "folder" / "other").read_bytes() == EXPECTED.lower()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "in", "out"]


def test_what_belongs_into_another_file_and_is_damaged_is_made_again(job: Job[Lines], tmp_path: Path) -> None:
    job = dataclasses.replace(job, others=(str(tmp_path / "other"),))
    assert finish(job, kind=Echoing, shards="1-4") is None
    (tmp_path / "out.parts" / "000002.1").write_bytes(b"line 9\n" * 3)
    assert finish(job, kind=Echoing) is not None
    assert (tmp_path / "other").read_bytes() == EXPECTED.lower()


def test_what_is_done_is_not_done_again(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, shards="2-3")
    progress: list[tuple[str, int]] = []
    finish(Job(**{**vars(job), "progress": lambda what, lines: progress.append((what, lines))}))
    assert progress == [("total", 10), ("resumed", 6), ("done", 3), ("done", 1)]
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "damage", [b"", b"LINE 3\n", b"LINE 3\nLINE 4\nLINE x\n", None], ids=["empty", "short", "changed", "lost"]
)
def test_a_part_that_is_not_what_was_written_is_done_again(
    job: Job[Lines], tmp_path: Path, damage: bytes | None, jobs: int
) -> None:
    finish(job, shards="1-4")
    part = tmp_path / "out.parts" / "000002"
    if damage is None:
        part.unlink()
    else:
        part.write_bytes(damage)
    assert finish(job, jobs=jobs) == [{"lines": 3}, {"lines": 3}, {"lines": 3}, {"lines": 1}]
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"job": 1, "bytes": 2, "crc": 3, "counts": 4}'])
def test_a_part_whose_record_is_damaged_is_done_again(job: Job[Lines], tmp_path: Path, content: bytes) -> None:
    finish(job, shards="1-4")
    (tmp_path / "out.parts" / "000003.json").write_bytes(content)
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_a_part_whose_counts_have_changed_is_done_again(job: Job[Lines], tmp_path: Path) -> None:
    """The name of a count, or its number, of which nothing else knows."""
    finish(job, shards="1-4")
    for number, before, after in ((1, b'"lines": 3', b'"limes": 3'), (2, b'"lines": 3', b'"lines": 7')):
        record = tmp_path / "out.parts" / f"{number:06d}.json"
        assert before in record.read_bytes()
        record.write_bytes(record.read_bytes().replace(before, after))
    assert finish(job) == [{"lines": 3}, {"lines": 3}, {"lines": 3}, {"lines": 1}]
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_a_damaged_part_found_while_others_are_done_is_done_again(job: Job[Lines], tmp_path: Path) -> None:
    """Also where half of it was in the output already."""
    finish(job, shards="1-2")
    (tmp_path / "out.parts" / "000002").write_bytes(b"LINE 3\nLINE 4\nLINE x\n")
    progress: list[tuple[str, int]] = []
    again = Job(**{**vars(job), "progress": lambda what, lines: progress.append((what, lines))})
    assert finish(again) == [{"lines": 3}, {"lines": 3}, {"lines": 3}, {"lines": 1}]
    assert [lines for what, lines in progress if what == "done"] == [3, 1, 3]
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_what_is_finished_is_put_together_while_the_rest_is_done(job: Job[Lines], tmp_path: Path) -> None:
    """The output has its name when it is whole."""
    sizes: list[int] = []

    def progress(what: str, lines: int) -> None:
        sizes.extend(path.stat().st_size for path in tmp_path.glob(".out.*.hybridmt.tmp") if what == "done")
        assert not (tmp_path / "out").exists()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmt_core.jobs.joining._BEHIND", 1)
        finish(Job(**{**vars(job), "progress": progress}))
    assert sizes == [len(b"".join(EXPECTED.splitlines(keepends=True)[:lines])) for lines in (0, 3, 6, 9)]
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the parts that have been flushed to the disk."""
    names: set[str] = set()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        names.add(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noted)
    return names


def test_parts_that_others_put_together_are_flushed_to_the_disk(job: Job[Lines], flushed: set[str]) -> None:
    finish(job, shards="2-3")
    assert {"000002", "000002.json", "000003", "000003.json"} < flushed


def test_parts_are_flushed_to_the_disk_every_few_seconds(
    job: Job[Lines], flushed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here after each."""
    finish(job)
    assert not any(name.startswith("00") for name in flushed)
    monkeypatch.setattr("nmt_core.jobs.parts._SECONDS", 0.0)
    finish(job)
    assert {f"00000{number}{suffix}" for number in range(1, 5) for suffix in ("", ".json")} < flushed


def test_a_part_of_another_job_is_done_again(job: Job[Lines], tmp_path: Path) -> None:
    """As a program leaves them that is killed while it removes what an earlier job has done."""
    finish(job, shards="1-4", version="1")
    (tmp_path / "out.parts" / "manifest.json").unlink()
    progress: list[tuple[str, int]] = []
    other = Job(**{**vars(job), "progress": lambda what, lines: progress.append((what, lines))})
    assert finish(other, version="2") is not None
    assert ("resumed", 0) in progress


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_input_whose_end_is_not_known_is_read_once(job: Job[Lines], tmp_path: Path, jobs: int) -> None:
    progress: list[tuple[str, int]] = []
    reads = []

    def counted() -> Iterator[Lines]:
        reads.append(len(progress))
        return read(job.source.path)

    source = job.source._replace(read=counted, share=half)
    once = Job(**{**vars(job), "source": source, "progress": lambda what, lines: progress.append((what, lines))})
    with LocalWorkers(partial(opened, job), jobs=jobs) as workers:
        assert run_job(once, workers) is not None
    assert len(reads) == 1
    assert [lines for what, lines in progress if what == "expected"] == [6, 12, 18, 20, 10]
    assert [lines for what, lines in progress if what == "done"] == [3, 3, 3, 1]
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize("shards", [None, "1-4"])
def test_what_was_done_while_the_input_was_read_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: str | None
) -> None:
    """Neither by the whole job nor by one who does some shards, which have to be planned then."""
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))
    job = job_in(tmp_path, share=half)
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "write", dying_at(3))
        with pytest.raises(Killed):
            finish(job)
    progress: list[tuple[str, int]] = []
    again = Job(**{**vars(job), "progress": lambda what, lines: progress.append((what, lines))})
    finish(again, shards=shards)
    assert sum(lines for what, lines in progress if what == "resumed") == 6
    assert [lines for what, lines in progress if what == "done"] == [3, 1]
    if shards is not None:
        finish(job)
    assert (tmp_path / "out").read_bytes() == EXPECTED


def dying_at(place: int) -> Callable[..., None]:
    write = Parts.write

    def written(self: Parts, task: Task[Any], piece: Piece) -> None:
        if task.place + 1 == place:
            raise Killed
        write(self, task, piece)

    return written


def test_a_shard_of_another_input_is_done_again(tmp_path: Path) -> None:
    """As of files that are no ordinary ones, whose digest nobody has."""
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))
    job = job_in(tmp_path, share=half)

    def dying(_: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        finish(job, finish=dying)
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % (number // 9) for number in range(10)))
    progress: list[tuple[str, int]] = []
    finish(Job(**{**vars(job), "progress": lambda what, lines: progress.append((what, lines))}))
    assert sum(lines for what, lines in progress if what == "resumed") == 0
    assert (tmp_path / "out").read_bytes() == b"".join(b"LINE %d\n" % (number // 9) for number in range(10))


def test_a_file_that_changes_while_it_is_read_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))
    job = job_in(tmp_path, share=half)

    def changing(what: str, lines: int) -> None:
        with open(tmp_path / "in", "ab") as stream:
            stream.write(b"more\n")

    job = Job(**{**vars(job), "files": {"in": str(tmp_path / "in")}, "progress": changing})
    with pytest.raises(InputError, match="in: changed while the job was at work; begin anew with --restart"):
        finish(job)
    assert not (tmp_path / "out").exists()


def test_a_file_that_changed_but_for_its_size_is_refused(job: Job[Lines], tmp_path: Path) -> None:
    """Also when all shards are finished."""
    (tmp_path / "source").write_bytes(b"one")
    names = [str(tmp_path / name) for name in ("in", "source")]
    job = Job(**{**vars(job), "files": {name: name for name in names}})
    finish(job, shards="1-4")
    for name in names:
        before = Path(name).read_bytes()
        Path(name).write_bytes(before.replace(b"e", b"f"))
        with pytest.raises(InputError, match=rf"{name}: changed since the job was begun.*--restart"):
            finish(job)
        Path(name).write_bytes(before)
    assert finish(job) is not None


def test_what_was_done_is_written_down_before_the_parts_go(job: Job[Lines], tmp_path: Path) -> None:
    """Whoever is killed meanwhile does it again."""

    def dying(_: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        finish(job, finish=dying)
    assert (tmp_path / "out").read_bytes() == EXPECTED
    counts: list[Any] = []
    assert finish(job, finish=counts.append) == counts[0]
    assert not (tmp_path / "out.parts").exists()


def test_shards_are_shared_out_and_put_together_by_the_last(job: Job[Lines], tmp_path: Path) -> None:
    assert finish(job, shards="3-4") is None
    assert finish(job, shards="1") is None
    assert not (tmp_path / "out").exists()
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_another_model_option_or_input_is_refused_with_the_difference(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, shards="1")
    other = {**job.description, "options": {"loud": False, "fast": False}}
    with pytest.raises(ConfigError, match=r"begun with options loud=True, not False.*--restart"):
        finish(Job(**{**vars(job), "description": other}))
    with pytest.raises(ConfigError, match="begun with models shouting='1', not '2'"):
        finish(job, version="2")
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 4", b"line x"))
    with pytest.raises(InputError, match=r"in:4: changed since the job was begun"):
        finish(job)
    assert finish(job, restart=True) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED.replace(b"LINE 4", b"LINE X")


def test_an_input_that_became_shorter_or_longer_is_refused(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, shards="1")
    with pytest.raises(ConfigError, match="begun with size 0, not 7"):
        finish(job_in(tmp_path, size=7))
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes()[:-7])
    with pytest.raises(InputError, match=r"in:10: changed since the job was begun"):
        finish(job)


def test_several_processes_make_the_same_bytes(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, jobs=2)
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_told_and_leaves_no_output(job: Job[Lines], tmp_path: Path, jobs: int) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job, jobs=jobs)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shards", [None, "1-2"])
def test_a_job_that_fails_before_anything_is_finished_leaves_nothing(
    job: Job[Lines], tmp_path: Path, shards: str | None
) -> None:
    job = Job(**{**vars(job), "output": str(tmp_path / "new" / "folder" / "out")})
    before = (tmp_path / "in").read_bytes()
    (tmp_path / "in").write_bytes(before.replace(b"line 1", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job, shards=shards)
    assert sorted(os.listdir(tmp_path)) == ["in"]
    (tmp_path / "in").write_bytes(before)
    assert finish(job, version="2") is not None
    assert (tmp_path / "new" / "folder" / "out").read_bytes() == EXPECTED


def test_a_job_that_fails_later_keeps_what_is_finished(job: Job[Lines], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job)
    assert sorted(os.listdir(tmp_path / "out.parts")) == [
        "000001", "000001.json", "000002", "000002.json", "lock", "manifest.json"
    ]  # fmt: skip


def test_a_job_that_was_killed_before_anything_is_finished_begins_anew(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, shards="1")
    for name in ("000001", "000001.json"):
        (tmp_path / "out.parts" / name).unlink()
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 4", b"line x"))
    assert finish(job, version="2") is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED.replace(b"LINE 4", b"LINE X")


def test_who_fails_takes_nothing_from_those_who_do_other_parts(job: Job[Lines], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 1", b"poison"))
    with held_folder(job.parts.folder, restart=False, alone=False), pytest.raises(NmtError, match="poison"):
        finish(job, shards="1")
    assert sorted(os.listdir(tmp_path / "out.parts")) == ["lock", "manifest.json"]


def test_a_process_that_dies_is_reported(job: Job[Lines], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"die"))
    with pytest.raises(NmtError, match="a worker process died"):
        finish(job, jobs=2, kind=Quitting)


def test_a_process_that_died_before_more_was_asked_is_reported(job: Job[Lines]) -> None:
    def tasks() -> Iterator[Any]:
        shard = Shard(first=1, lines=1, crc=0)
        yield Task(0, shard, "", (1, [b"die"]))
        deadline = time.monotonic() + 60
        while multiprocessing.active_children() and time.monotonic() < deadline:  # all are ended when one has died
            time.sleep(0.01)
        yield Task(1, shard, "", (1, [b"more"]))

    workers = LocalWorkers(partial(opened, job, kind=Quitting), jobs=2)
    with workers, pytest.raises(NmtError, match="a worker process died"):
        list(workers.map(tasks()))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_gpu_that_is_full_is_reported(job: Job[Lines], tmp_path: Path, jobs: int) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"full"))
    with pytest.raises(NmtError, match="a GPU's memory is full"):
        finish(job, jobs=jobs, kind=Filling)


def test_a_worker_that_cannot_be_made_says_why(job: Job[Lines]) -> None:
    with LocalWorkers(broken, jobs=2) as workers, pytest.raises(NmtError, match="cannot be made"):
        run_job(job, workers)


class Differing(Shouting):
    """Finds another model than the process beside it, as where one is saved while they begin."""

    def __init__(self, number: int = 0, *, version: str = "1") -> None:
        super().__init__(number, version=str(number))


def test_processes_that_differ_are_refused(job: Job[Lines], tmp_path: Path) -> None:
    def tasks() -> Iterator[Any]:
        while True:  # until each of the processes has been asked
            yield Task(0, Shard(first=1, lines=1, crc=0), "", (1, [b"line"]))

    workers = LocalWorkers(partial(opened, job, kind=Differing), jobs=2)
    os.mkdir(job.parts.folder)
    with workers, pytest.raises(NmtError, match=r"two workers differ: shouting='[01]', and '[01]'"):
        list(workers.map(tasks()))


@pytest.mark.parametrize("options", [{}, {"restart": True}, {"shards": "1"}, {"shards": "1", "restart": True}])
def test_two_programs_do_not_make_one_output(job: Job[Lines], options: dict[str, Any]) -> None:
    finish(job, shards="2")
    before = sorted(os.listdir(job.parts.folder))
    with held_folder(job.parts.folder, restart=False, alone=True), pytest.raises(ConfigError, match="another program"):
        finish(job, **options)
    assert sorted(os.listdir(job.parts.folder)) == before


def test_who_does_parts_lets_others_do_parts_but_nothing_begin_anew(job: Job[Lines], tmp_path: Path) -> None:
    with held_folder(job.parts.folder, restart=False, alone=False):
        assert finish(job, shards="1-2") is None
        for options in ({}, {"restart": True}, {"shards": "3", "restart": True}):
            with pytest.raises(ConfigError, match="another program"):
                finish(job, **options)
    assert finish(job) is not None


def test_two_names_of_one_output_are_one_job(job: Job[Lines], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    linked = Job(**{**vars(job), "output": str(tmp_path / "link")})
    assert linked.parts == job.parts
    with held_folder(job.parts.folder, restart=False, alone=True), pytest.raises(ConfigError, match="another program"):
        finish(linked)
    assert finish(linked) is not None
    assert (tmp_path / "link").is_symlink() and (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", ["thesis.tex", "manifest.json", "lock", "000001"])
def test_a_folder_of_somebody_else_is_left_alone(job: Job[Lines], tmp_path: Path, name: str, restart: bool) -> None:
    folder = tmp_path / "out.parts"
    folder.mkdir()
    (folder / name).write_bytes(b"years of work")
    with pytest.raises(ConfigError, match=r"out\.parts: is there already and does not hold parts of a job"):
        finish(job, restart=restart)
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [(name, b"years of work")]
    assert not (tmp_path / "out").exists()


def test_a_foreign_file_among_the_parts_stays(job: Job[Lines], tmp_path: Path) -> None:
    finish(job, shards="1")
    (tmp_path / "out.parts" / "notes").write_bytes(b"mine")
    assert finish(job, restart=True) is not None
    assert sorted(os.listdir(tmp_path / "out.parts")) == ["lock", "notes"]
    assert finish(job) is not None


def test_what_a_program_killed_while_merging_left_goes(job: Job[Lines], tmp_path: Path) -> None:
    left = tmp_path / ".out.01234567.hybridmt.tmp"
    left.write_bytes(b"half")
    finish(job, shards="1-4")
    assert finish(job) is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_interrupted_while_merging_nothing_is_left_but_the_parts(
    job: Job[Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted_at(os.replace, str(tmp_path / "out")))
        with pytest.raises(KeyboardInterrupt):
            finish(job)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "out.parts"]
    assert (tmp_path / "out").read_bytes() == b"old"
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED


def interrupted_at(replace: Callable[[str, str], None], name: str) -> Callable[[str, str], None]:
    def interrupted(source: str, target: str) -> None:
        if target == name:
            raise KeyboardInterrupt
        replace(source, target)

    return interrupted


def test_a_folder_that_cannot_be_made_is_one_clear_line(job: Job[Lines], tmp_path: Path) -> None:
    (tmp_path / "out.parts").write_bytes(b"")
    with pytest.raises(NmtError, match=r"out\.parts: cannot be written"):
        finish(job)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 99}'])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InputError, match="--restart"):
        read_manifest(str(tmp_path / "m"))


@pytest.mark.parametrize("wrong", ["", "0", "3-2", "a-b", "1-9", "-1", "1-"])
def test_a_range_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="numbers from 1 to 5"):
        parse_range(wrong, 5)


def test_a_shard_knows_its_content() -> None:
    assert shard_of(5, b"a\nb") != shard_of(5, b"a\nc")
    assert shard_of(5, b"a\nb") == Shard(5, 2, shard_of(5, b"a\nb").crc)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "v").write_text("\n".join(["</s>", "<unk>", *(f"w{number}" for number in range(30))]) + "\n")
    sizes = ["hidden=16", "embedding=8", "alignment=8", "maxout=8", "initialisation=glorot"]
    settings = [part for size in sizes for part in ("--set", f"model.{size}")]
    vocabularies = ["--source-vocab", str(folder / "v"), "--target-vocab", str(folder / "v")]
    assert nmt_core(["init", str(folder / "m"), "--preset", "rnnsearch", *vocabularies, *settings]) == 0
    return folder / "m"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """About 60,000 lines: three shards."""
    path = tmp_path / "table.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for source in range(3000):
            for target in range(20):
                words = " ".join(f"w{(source * 7 + target * place) % 33}" for place in range(1 + target % 5))
                stream.write(f"w{source % 31} w{source} ||| {words} ||| 0.5 0.25 ||| 0-0\n".encode())
    return path


@pytest.mark.slow
def test_a_real_job_killed_for_good_goes_on_to_the_same_bytes(model: Path, table: Path, tmp_path: Path) -> None:
    whole, pieces = tmp_path / "whole.gz", tmp_path / "pieces.gz"
    options = [str(table), "--scorer", str(model), "--unknown-count", "--devices", "cpu"]
    assert smt_bridge(["rescore-table", *options, "--output", str(whole), "--jobs", "1", "--quiet"]) == 0
    command = [sys.executable, "-m", "smt_bridge", "rescore-table", *options, "--output", str(pieces), "--jobs", "2"]
    parts = tmp_path / "pieces.gz.parts"
    for wanted in (1, 2):
        program = subprocess.Popen([*command, "--quiet"], stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60
        while program.poll() is None and time.monotonic() < deadline:
            if parts.is_dir() and len(list(parts.glob("00*.gz"))) >= wanted:
                break
            time.sleep(0.005)
        program.kill()
        program.wait()
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pieces.read_bytes() == whole.read_bytes()
    records = [json.loads((tmp_path / f"{name}.gz.json").read_bytes()) for name in ("whole", "pieces")]
    assert records[0] == records[1]
    assert not parts.exists()


class Endless(Shouting):
    """Says that it works, and does not end."""

    def __call__(self, item: Lines) -> Piece:
        sys.stdout.write("working\n")
        sys.stdout.flush()
        threading.Event().wait()
        raise AssertionError


def work_without_end() -> None:
    """A program of two processes that never end by themselves, and that a terminal may end, even under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with LocalWorkers(Endless, 2) as workers:
        list(workers.map([(1, [b"a"]), (2, [b"b"])]))


def job_without_end() -> None:
    """A job of one process in the current folder, that never ends by itself."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    finish(job_in(Path()), kind=Endless)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_job_of_one_process_that_is_told_to_end_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "in").write_bytes(b"line\n")
    command = [sys.executable, "-c", f"from {__name__} import job_without_end; job_without_end()"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path) as program:
        assert program.stdout is not None and program.stdout.readline() == b"working\n"
        assert (tmp_path / "out.parts").exists()
        program.send_signal(number)
    assert program.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_leaves_nothing_and_says_nothing(number: signal.Signals) -> None:
    command = [sys.executable, "-c", f"from {__name__} import work_without_end; work_without_end()"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True) as program:
        assert program.stdout is not None
        assert [program.stdout.readline(), program.stdout.readline()] == ["working\n"] * 2
        program.send_signal(number)
        _, said = program.communicate(timeout=250)  # which waits for all who could write
    assert (program.returncode, said) == (128 + number, "")
