"""Long jobs: killed anywhere, shared out or done at once, the output has the same bytes."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import itertools
import math
import multiprocessing
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.commands.options import shard_range
from nmt_core.commands.program import Command, Program, run_command
from nmt_core.files import partial_output, read_lines
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Outputs, Result
from nmt_core.jobs.run import Job, open_workers, run_job, run_with_options
from nmt_core.jobs.workers import awaited

Lines = tuple[int, list[bytes]]


class Shouting:
    """Writes lines in capitals."""

    def __init__(self, number: int = 0, *, version: str = "1") -> None:
        self.description: dict[str, Any] = {"shouting": version}

    def __call__(self, item: Lines) -> Result:
        lines = item[1]
        if b"poison" in lines:
            raise NmtError("a line is poison")
        return Result((b"".join(line.upper() + b"\n" for line in lines),), {"lines": len(lines)})


class Quitting(Shouting):
    """Dies where a line says so, as a process without memory does."""

    def __call__(self, item: Lines) -> Result:
        if b"die" in item[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(item)


class OutOfMemoryError(RuntimeError):
    """Called as PyTorch's is."""


def broken(error: Exception, number: int) -> Any:
    raise error


def read(path: str) -> Iterator[tuple[Shard, Lines]]:
    """Three lines at a time."""
    lines = Path(path).read_bytes().splitlines()
    for first in range(0, len(lines), 3):
        part = lines[first : first + 3]
        yield Shard.of(first + 1, b"\n".join(part)), (first + 1, part)


def job_in(folder: Path) -> Job:
    path = str(folder / "in")
    return Job(
        input=path,
        read=partial(read, path),
        outputs=(str(folder / "out"),),
        description={"options": {"loud": True, "fast": False}},
        files={"in": path},
        journaled=True,
    )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))
    return job_in(tmp_path)


EXPECTED = b"".join(b"LINE %d\n" % number for number in range(10))


def opened(number: int, *, kind: type[Shouting] = Shouting, version: str = "1") -> Any:
    return kind(number, version=version)


def finish(
    job: Job,
    *,
    jobs: int = 1,
    kind: type[Shouting] = Shouting,
    version: str = "1",
    shards: str | None = None,
    **options: Any,
) -> Any:
    wanted = shard_range(shards) if shards else None
    return run_job(job, partial(opened, kind=kind, version=version), jobs=jobs, shards=wanted, **options)


def noted_by(progress: list[tuple[str, int]]) -> Callable[[Shard, Any, bool], None]:
    return lambda shard, counts, resumed: progress.append(("resumed" if resumed else "done", shard.lines))


def test_more_processes_than_files_can_be_open_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    workers = open_workers(abs, 500)  # type: ignore[arg-type]  # which is not called
    problem = "--jobs 500: at most 256 processes with 1,024 open files; give fewer, or raise 'ulimit -n'"
    with pytest.raises(ConfigError, match=problem), workers:
        pass
    monkeypatch.setattr("nmt_core.jobs.workers._start", divmod)  # where the first process would begin
    with pytest.raises(TypeError), open_workers(abs, 256):  # type: ignore[arg-type]
        pass


class Killed(BaseException):
    """Stands for the end of the program."""


STEPS = ["mkdir", "open", "replace", "unlink", "fsync", "append", "commit", "resume"]


@contextlib.contextmanager
def ended_at(monkeypatch: pytest.MonkeyPatch, step: str, times: int, *, before: bool) -> Iterator[None]:
    """The program ends at the call of a step that is number ``times``: before the call, or behind it.

    As after a kill, what it leaves stays there.
    """
    place: Any = Outputs if hasattr(Outputs, step) else os
    original: Callable[..., Any] = getattr(place, step)
    unlink = os.unlink
    calls, dead = 0, False

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls, dead
        calls += 1
        if calls == times and before:
            dead = True
            raise Killed
        result = original(*args, **kwargs)
        if calls == times:
            dead = True
            raise Killed
        return result

    def unlinked(*args: Any, **kwargs: Any) -> None:
        if not dead:
            unlink(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", unlinked)
        patch.setattr(place, step, dying)
        yield


class Echoing(Shouting):
    """Writes lines in small letters into another file."""

    def __call__(self, item: Lines) -> Result:
        (content,), counts = super().__call__(item)
        return Result((content, content.lower()), counts)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("times", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_step_it_goes_on_to_the_same_bytes(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, times: int, before: bool
) -> None:
    """A job of two files."""
    job = dataclasses.replace(job, outputs=(*job.outputs, str(tmp_path / "folder" / "other")))
    with ended_at(monkeypatch, step, times, before=before):
        try:
            finish(job, kind=Echoing)
        except Killed:
            assert not (tmp_path / "out").exists() or (tmp_path / "out").read_bytes() == EXPECTED
            assert (
                not (tmp_path / "out").exists() or (tmp_path / "folder" / "other").exists()
            )  # the first one comes last
    assert finish(job, kind=Echoing) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert (tmp_path / "folder" / "other").read_bytes() == EXPECTED.lower()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "in", "out"]
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["other"]


class Stopped(Shouting):
    """Ends where a line says so."""

    def __call__(self, item: Lines) -> Result:
        if b"line 6" in item[1]:
            raise Killed
        return super().__call__(item)


def stopped_after_two(job: Job, kind: type[Shouting] = Stopped) -> None:
    """The job, of which the first two shards are finished."""
    with pytest.raises(Killed):
        finish(job, kind=kind)


@pytest.fixture
def partial_file(tmp_path: Path) -> Path:
    return tmp_path / ".out.hybridmt.tmp"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / ".out.hybridmt.journal"


def test_what_belongs_into_another_file_and_is_damaged_is_made_again(job: Job, tmp_path: Path) -> None:
    class StoppedEcho(Echoing, Stopped):
        pass

    job = dataclasses.replace(job, outputs=(*job.outputs, str(tmp_path / "other")))
    stopped_after_two(job, StoppedEcho)
    (tmp_path / ".other.hybridmt.tmp").write_bytes(b"line 9\n" * 6)
    assert finish(job, kind=Echoing) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert (tmp_path / "other").read_bytes() == EXPECTED.lower()


@pytest.mark.parametrize("call", ["nmt_core.jobs.outputs.open", "pathlib.Path.read_bytes"])
@pytest.mark.parametrize("problem", [OSError(errno.EMFILE, "Too many open files"), KeyboardInterrupt()])
def test_what_is_finished_stays_where_the_journal_cannot_be_opened(
    job: Job, monkeypatch: pytest.MonkeyPatch, problem: BaseException, call: str
) -> None:
    stopped_after_two(job)

    def fail(*_: object) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(call, fail, raising=False)
        with pytest.raises((NmtError, KeyboardInterrupt)):
            finish(job)
    progress: list[tuple[str, int]] = []
    finish(job, seen=noted_by(progress))
    assert [lines for kind, lines in progress if kind == "resumed"] == [3, 3]


def test_without_a_journal_nothing_of_finished_shards_stays_in_memory(job: Job) -> None:
    sizes: list[int] = []

    def stream() -> Iterator[tuple[Shard, Lines]]:
        for number in range(3000):
            if number in (1000, 2999):
                sizes.append(tracemalloc.get_traced_memory()[0])
            yield Shard.of(number, b""), (number, [b""])

    tracemalloc.start()
    try:
        finish(dataclasses.replace(job, input="-", read=stream, journaled=False))
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 100_000  # bytes: with 2,000 entries it would be a million


@pytest.mark.parametrize(
    ("damage", "jobs"),
    [(b"", 1), (EXPECTED[:24], 1), (b"LINE 0\nLINE 1\nLINE 2\nLINE 3\nLINE 4\nLINE x\n", 2), (None, 1)],
    ids=["empty", "short", "changed", "lost"],
)
def test_an_output_that_is_not_what_was_written_is_made_again_from_there(
    job: Job, tmp_path: Path, partial_file: Path, damage: bytes | None, jobs: int
) -> None:
    stopped_after_two(job)
    if damage is None:
        partial_file.unlink()
    else:
        partial_file.write_bytes(damage)
    assert finish(job, jobs=jobs) == {"lines": 10}
    assert (tmp_path / "out").read_bytes() == EXPECTED


FORGED = [
    b"[1]",
    b"{}",
    b'{"shard": [1, 3], "outputs": [], "counts": {}}',
    b'{"shard": [1, 3], "outputs": [[-1, 0]], "counts": {}}',
    b'{"shard": [1, 3], "outputs": [[100000000000000000000, 0]], "counts": {}}',
    b'{"shard": ["a", 3], "outputs": [[21, 0]], "counts": {}}',
    b"[" * 10_000,
]


def forged(body: bytes) -> bytes:
    """A line with a right checksum."""
    return b"%08x %b\n" % (zlib.crc32(body), body)


@pytest.mark.parametrize(
    "damaged",
    [
        *(lambda content, size=size: content[:size] for size in (0, 5, 40, -1, -30, -60)),
        *(lambda content, body=body: content.splitlines(True)[0] + forged(body) for body in FORGED),
        lambda content: content.replace(b'"lines": 3}}', b'"limes": 3}}'),  # of which nothing else knows
        lambda content: content.replace(b'"lines": 3}}', b'"lines": 7}}'),
        lambda _: b"years of work\n",
        lambda _: b"{}\n",
    ],
)
def test_a_journal_counts_up_to_where_it_is_damaged(
    job: Job, tmp_path: Path, journal: Path, damaged: Callable[[bytes], bytes]
) -> None:
    stopped_after_two(job)
    content = journal.read_bytes()
    journal.write_bytes(damaged(content))
    assert journal.read_bytes() != content
    assert finish(job) == {"lines": 10}
    assert (tmp_path / "out").read_bytes() == EXPECTED
    journal.write_bytes(content.splitlines(keepends=True)[0])  # of a job without a finished shard
    assert finish(job, version="2") == {"lines": 10}


def test_a_bar_knows_what_was_done_before(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, bars = list[int](), list[Any]()
    bar = SimpleNamespace(update=steps.append)
    begun = lambda *names, path, quiet: bars.append((*names, path, quiet)) or contextlib.nullcontext(bar)  # noqa: E731
    monkeypatch.setattr("nmt_core.jobs.run.progress_bar", begun)
    stopped_after_two(job)
    common: dict[str, Any] = {"name": "do", "unit": "line", "jobs": 1, "quiet": True, "on_complete": lambda *_: None}
    for shards, counts in ((range(3, 4), None), (None, {"lines": 10})):
        args = argparse.Namespace(shards=shards, restart=False, engine=None)
        assert run_with_options(args, job, opened, **common) == counts
    assert bars == [("do", "line", None, True), ("do", "line", job.input, True)]
    assert (steps, bar.initial) == ([1, 3, 3, 3, 1], 7)


def test_a_damaged_range_is_done_again(job: Job, tmp_path: Path) -> None:
    finish(job, shards="1-2")
    harmed = tmp_path / ".out.shards-1-2.hybridmt.tmp"

    def harming() -> Iterator[tuple[Shard, Lines]]:  # when it was found to be sound
        harmed.write_bytes(harmed.read_bytes().replace(b"5", b"x"))
        return read(job.input)

    with pytest.raises(NmtError) as caught:
        finish(dataclasses.replace(job, read=harming))
    problem = "what was written of shard 2 is damaged; start again with --restart"
    assert str(caught.value) == f"{tmp_path}/out.shards-1-2: {problem}"
    progress: list[tuple[str, int]] = []
    assert finish(job, seen=noted_by(progress)) == {"lines": 10}
    assert [lines for what, lines in progress if what == "done"] == [3, 3, 1]
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_the_output_has_its_name_when_it_is_complete(job: Job, tmp_path: Path, partial_file: Path) -> None:
    sizes: list[int] = []

    def seen(shard: Shard, counts: Any, resumed: bool) -> None:
        if not resumed:
            sizes.append(partial_file.stat().st_size)
        assert not (tmp_path / "out").exists()

    finish(job, seen=seen)
    assert sizes == [len(b"".join(EXPECTED.splitlines(keepends=True)[:lines])) for lines in (3, 6, 9, 10)]
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_outputs_are_flushed_to_the_disk_every_few_seconds(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every five; and at the end of a range, which others put together."""
    flushed: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        flushed.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noted)
    finish(job, shards="2-3")
    assert flushed == [".out.shards-2-3.hybridmt.tmp", ".out.shards-2-3.hybridmt.journal"]
    finish(job)
    assert ".out.hybridmt.journal" not in flushed
    now = math.ceil(time.monotonic())
    times = iter([now + 3.9, now + 6, now + 6, now + 10.9, now + 11, now + 11])  # behind each shard, and when flushed
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    finish(job)
    assert flushed.count(".out.hybridmt.journal") == 2


def test_a_file_that_changes_while_it_is_read_once_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"line %d\n" % number for number in range(10)))

    def changing(*_: object) -> None:
        with open(tmp_path / "in", "ab") as stream:
            stream.write(b"more\n")

    remedy = "put the old file back, or start again with --restart"
    with pytest.raises(InputError, match=rf"^in: changed since the job was begun; {remedy}$"):
        finish(job_in(tmp_path), seen=changing)
    assert os.listdir(tmp_path) == ["in"]  # which content the lines were of is not known


@pytest.mark.parametrize("shards", [None, "1-2"])
def test_a_file_that_changes_while_workers_begin_is_rejected(job: Job, tmp_path: Path, shards: str | None) -> None:
    """They have read the old one, and the new one would be hashed for it."""
    source = tmp_path / "source"
    source.write_bytes(b"one")
    job = dataclasses.replace(job, files={"source": str(source)})

    def changing(number: int) -> Shouting:
        source.write_bytes(b"other")
        return Shouting(number)

    with pytest.raises(InputError, match=r"source: changed since the job was begun; .*--restart"):
        run_job(job, changing, shards=shards and shard_range(shards))
    assert sorted(os.listdir(tmp_path)) == ["in", "source"]


@pytest.mark.parametrize("shards", [None, "1-4"])
def test_lines_of_a_file_that_changed_meanwhile_do_not_stay_when_the_old_one_is_back(
    job: Job, shards: str | None
) -> None:
    """The program is killed before it could see the change."""
    path, before = Path(job.input), Path(job.input).read_bytes()

    def changed() -> Iterator[tuple[Shard, Lines]]:
        path.write_bytes(before.replace(b"line 4", b"wrong"))
        yield from itertools.islice(read(str(path)), 2)
        raise Killed

    with pytest.raises(Killed):
        finish(dataclasses.replace(job, read=changed), shards=shards)
    path.write_bytes(before)
    with pytest.raises(ConfigError, match="in: shard 2 was begun with other lines; start again with --restart"):
        finish(job)
    assert finish(job, restart=True) is not None
    assert Path(job.outputs[0]).read_bytes() == EXPECTED


def test_an_input_that_is_removed_meanwhile_costs_nothing(job: Job) -> None:
    path, before = Path(job.input), Path(job.input).read_bytes()

    def removed() -> Iterator[tuple[Shard, Lines]]:
        yield from read(str(path))
        path.unlink()

    with pytest.raises(InputError, match="cannot be read"):
        finish(dataclasses.replace(job, read=removed))
    path.write_bytes(before)
    progress: list[tuple[str, int]] = []
    finish(job, seen=noted_by(progress))
    assert {kind for kind, _ in progress} == {"resumed"}
    assert Path(job.outputs[0]).read_bytes() == EXPECTED


def test_what_was_done_is_written_down_before_the_output_has_its_name(job: Job, tmp_path: Path) -> None:
    """A program that is killed meanwhile does it again, and nothing else."""

    def dying(*_: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        finish(job, on_complete=dying)
    assert not (tmp_path / "out").exists()
    counts: list[Any] = []
    assert finish(job, on_complete=lambda found, _: counts.append(found)) == counts[0]
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_shards_are_shared_out_and_put_together_by_the_last(job: Job, tmp_path: Path) -> None:
    assert finish(job, shards="3-4") is None
    assert finish(job, shards="1") is None
    assert not (tmp_path / "out").exists()
    progress: list[tuple[str, int]] = []
    assert finish(job, seen=noted_by(progress)) is not None
    assert [one for one in progress if one[0] in ("done", "resumed")] == [
        ("resumed", 3), ("done", 3), ("resumed", 3), ("resumed", 1)
    ]  # fmt: skip
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_content_of_a_range_whose_journal_is_gone_does_not_stay(job: Job, tmp_path: Path) -> None:
    """As where the program that put the ranges together was killed while it removed them."""
    finish(job, shards="3-4")
    (tmp_path / ".out.shards-3-4.hybridmt.journal").unlink()
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("begin", [partial(finish, shards="1"), stopped_after_two])
def test_another_model_option_or_input_is_rejected_with_the_difference(
    job: Job, tmp_path: Path, begin: Callable[[Job], object]
) -> None:
    """By the whole job and by another range, of a range and of the whole job."""
    begin(job)
    other = dataclasses.replace(job, description={**job.description, "options": {"loud": False, "fast": False}})
    for shards in (None, "1", "2"):
        with pytest.raises(
            ConfigError,
            match=r"begun with options loud=True, not False; go on with that, or start again with --restart$",
        ):
            finish(other, shards=shards)
        with pytest.raises(ConfigError, match="begun with models shouting='1', not '2'"):
            finish(job, version="2", shards=shards)
    assert finish(other, shards="2", restart=True) is None
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 2", b"line x"))
    with pytest.raises(InputError, match=r"in: changed since the job was begun"):
        finish(job)
    assert finish(job, restart=True) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED.replace(b"LINE 2", b"LINE X")


def test_a_version_that_cuts_its_input_in_other_places_is_rejected(job: Job) -> None:
    stopped_after_two(job)
    lines = Path(job.input).read_bytes().splitlines()
    with pytest.raises(ConfigError, match="in: shard 1 was begun with other lines; start again with --restart"):
        finish(dataclasses.replace(job, read=lambda: iter([(Shard.of(1, b"\n".join(lines)), (1, lines))])))


@pytest.mark.parametrize("shards", [None, "1-2"])
def test_a_journal_of_another_version_is_named_and_goes_with_restart(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: str | None
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("nmt_core.jobs.run._VERSION", 99)
        if shards is None:
            stopped_after_two(job)
        else:
            finish(job, shards=shards)
    problem = r"hybridmt\.journal: the job was begun with journal version 99, not 3; .* start again with --restart"
    with pytest.raises(ConfigError, match=problem):
        finish(job)
    assert finish(job, restart=True) is not None
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]
    assert (tmp_path / "out").read_bytes() == EXPECTED


@pytest.mark.parametrize(
    ("suffix", "magic"), [("", b""), (".gz", b"\x1f\x8b"), (".xz", b"\xfd7zXZ"), (".zst", b"\x28\xb5\x2f\xfd")]
)
@pytest.mark.parametrize("journaled", [True, False])
def test_of_an_empty_input_other_programs_can_read_the_output(
    tmp_path: Path, suffix: str, magic: bytes, journaled: bool
) -> None:
    """gzip and xz refuse a file without a byte."""
    (tmp_path / "in").write_bytes(b"")
    output = str(tmp_path / f"out{suffix}")
    assert finish(dataclasses.replace(job_in(tmp_path), outputs=(output,), journaled=journaled)) == {}
    content = Path(output).read_bytes()
    assert content.startswith(magic) and bool(content) == bool(suffix)
    assert list(read_lines(output)) == []


def test_a_pipe_that_a_job_needs_twice_is_refused(job: Job, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    needing = dataclasses.replace(job, files={**job.files, "pipe": str(tmp_path / "pipe")})
    with pytest.raises(InputError, match="is a pipe; expected an ordinary file"):
        finish(needing)


def test_an_error_of_a_process_is_told_and_leaves_no_output(job: Job, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job, jobs=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shards", [None, "1-2"])
def test_a_job_that_fails_before_anything_is_finished_leaves_nothing(
    job: Job, tmp_path: Path, shards: str | None
) -> None:
    job = dataclasses.replace(job, outputs=(str(tmp_path / "new" / "folder" / "out"),))
    before = (tmp_path / "in").read_bytes()
    (tmp_path / "in").write_bytes(before.replace(b"line 1", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job, shards=shards)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["in"]
    (tmp_path / "in").write_bytes(before)
    assert finish(job, version="2") is not None
    assert (tmp_path / "new" / "folder" / "out").read_bytes() == EXPECTED


def test_a_job_that_fails_later_keeps_what_is_finished(
    job: Job, tmp_path: Path, partial_file: Path, journal: Path
) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"poison"))
    with pytest.raises(NmtError, match="poison"):
        finish(job)
    assert sorted(os.listdir(tmp_path)) == [journal.name, partial_file.name, "in"]
    assert partial_file.read_bytes() == b"".join(EXPECTED.splitlines(keepends=True)[:6])


def test_a_range_that_fails_takes_nothing_from_another(job: Job, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 1", b"poison"))
    assert finish(job, shards="3-4") is None
    with pytest.raises(NmtError, match="poison"):
        finish(job, shards="1")
    assert sorted(os.listdir(tmp_path)) == [".out.shards-3-4.hybridmt.journal", ".out.shards-3-4.hybridmt.tmp", "in"]


def test_a_process_that_dies_is_reported(job: Job, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes().replace(b"line 7", b"die"))
    problem = r"^a worker process died \(out of memory\?\); start the same command again, with fewer --jobs$"
    with pytest.raises(NmtError, match=problem):
        finish(job, jobs=2, kind=Quitting)


class Halved(Shouting):
    """Sends half of an answer, writes its process into the FIFO that the item names, and waits for its end."""

    def __call__(self, item: Lines) -> Result:
        def half(connection: Connection, content: Any) -> None:
            os.write(connection.fileno(), content[: len(content) // 2])
            Path(os.fsdecode(item[1][0])).write_text(str(os.getpid()))
            threading.Event().wait()

        Connection._send = half  # type: ignore[attr-defined]
        return super().__call__(item)


@contextlib.contextmanager
def cut_off_answer(folder: Path) -> Iterator[tuple[int, Callable[[], Any]]]:
    """The process that has sent half of an answer, and what waits for the rest."""
    os.mkfifo(folder / "fifo")
    with open_workers(partial(opened, kind=Halved), 2) as workers:
        answer = workers.ask((1, [os.fsencode(folder / "fifo")]))
        yield int((folder / "fifo").read_text()), answer


def test_a_process_that_is_killed_while_it_answers_is_reported(tmp_path: Path) -> None:
    with cut_off_answer(tmp_path) as (process, answer):
        os.kill(process, signal.SIGKILL)
        with pytest.raises(NmtError, match="a worker process died"):
            answer()


def test_a_job_that_fails_while_a_process_answers_ends(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), cut_off_answer(tmp_path):
        raise KeyboardInterrupt


class Busy(Shouting):
    """Writes the number of its process, and is not done before the test."""

    def __call__(self, item: Any) -> Any:
        Path(item).write_text(f"{os.getpid()}\n")
        time.sleep(600)


def keep_one_busy(path: str) -> None:
    with open_workers(Busy, 2) as workers:
        workers.ask(path)()


def test_processes_that_are_at_work_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "number"
    program = multiprocessing.get_context("spawn").Process(target=keep_one_busy, args=(str(path),))
    program.start()
    while not (path.exists() and path.read_text().endswith("\n")):
        assert program.is_alive()
        time.sleep(0.02)
    worker = os.pidfd_open(int(path.read_text()))
    program.kill()
    program.join()
    ended, _, _ = select.select([worker], [], [], 60)
    if not ended:
        signal.pidfd_send_signal(worker, signal.SIGKILL)
    os.close(worker)
    assert ended


@pytest.mark.parametrize("error", [InputError("text", "is odd", line=3), OutOfMemoryError("out of memory")])
def test_what_goes_wrong_in_a_process_is_what_would_go_wrong_here(error: Exception) -> None:
    """While a worker is made."""
    with pytest.raises(type(error), match=str(error)), open_workers(partial(broken, error), 2):
        pass


class Odd(Exception):
    """Cannot be read by another process: it is made with more than its words."""

    def __init__(self, word: str, number: int) -> None:
        super().__init__(word)


class OddAnswers(Shouting):
    """Raises what does not cross to the program, or answers so."""

    def __call__(self, item: Any) -> Any:
        if item == "error":
            raise Odd("odd words", 1)
        return lambda: None


@pytest.mark.parametrize(("item", "words"), [("error", "Odd: odd words"), ("answer", "Can't pickle")])
def test_what_cannot_cross_to_the_program_is_said_by_its_words(item: str, words: str) -> None:
    with open_workers(partial(opened, kind=OddAnswers), 2) as workers:
        with pytest.raises(Exception, match=words):
            workers.ask(item)()
        assert workers.description


class Differing(Shouting):
    """Finds another model than the process beside it, as where one is saved while they begin."""

    def __init__(self, number: int = 0, *, version: str = "1") -> None:
        super().__init__(number, version=str(number))


def test_processes_that_differ_are_refused() -> None:
    def tasks() -> Iterator[Any]:
        while True:  # until each of the processes has been asked
            yield 1, [b"line"]

    differing = open_workers(partial(opened, kind=Differing), 2)
    problem = r"two workers differ: shouting='[01]', and '[01]'; was a model replaced .* not alike\? Start again$"
    with differing as workers, pytest.raises(NmtError, match=problem):
        list(workers.answers(tasks()))
    assert workers.ahead == 4


@pytest.mark.parametrize("options", [{}, {"restart": True}])
def test_two_programs_do_not_make_one_output(job: Job, tmp_path: Path, options: dict[str, Any]) -> None:
    with partial_output(job.outputs[0]), pytest.raises(NmtError, match="another program is writing it"):
        finish(job, **options)
    assert sorted(os.listdir(tmp_path)) == ["in"]


def test_a_range_that_is_at_work_lets_others_work_but_is_not_put_together(job: Job, tmp_path: Path) -> None:
    finish(job, shards="3-4")
    with partial_output(str(tmp_path / "out.shards-3-4")) as held:
        held.is_kept = True
        assert finish(job, shards="1-2") is None
        for shards in (None, "3-4"):
            with pytest.raises(NmtError, match=r"shards-3-4: another program is writing it"):
                finish(job, shards=shards)
    assert finish(job) is not None
    assert (tmp_path / "out").read_bytes() == EXPECTED


def test_two_names_of_one_output_are_one_job(job: Job, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    stopped_after_two(job)
    linked = dataclasses.replace(job, outputs=(str(tmp_path / "link"),))
    with partial_output(job.outputs[0]) as held:
        held.is_kept = True
        with pytest.raises(NmtError, match="another program"):
            finish(linked)
    assert finish(linked, shards="4") is None
    progress: list[tuple[str, int]] = []
    assert finish(linked, seen=noted_by(progress)) is not None
    assert sum(lines for what, lines in progress if what == "resumed") == 7
    assert (tmp_path / "link").is_symlink() and (tmp_path / "out").read_bytes() == EXPECTED


IN_THE_WAY = "it is in the way of a file of this name; remove it"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, partial(os.symlink, "in")])
def test_what_is_in_the_way_of_a_journal_is_named_and_stays(job: Job, journal: Path, make: Callable[..., None]) -> None:
    make(journal)
    before = (os.lstat(journal), Path(job.input).read_bytes())
    with pytest.raises(NmtError, match=rf"^{re.escape(str(journal))}: cannot be written \({IN_THE_WAY}\)$"):
        finish(job)
    assert (os.lstat(journal), Path(job.input).read_bytes()) == before


def test_a_journal_that_takes_no_more_costs_no_finished_shard(job: Job, tmp_path: Path) -> None:
    Path(job.input).write_bytes(b"l\n" * 300)  # whose journal is larger than the output
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        with pytest.raises(NmtError, match=r"out: cannot be written \(File too large\)"):
            finish(job)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    progress: list[tuple[str, int]] = []
    assert finish(job, seen=noted_by(progress)) == {"lines": 300}
    assert progress[:3] == [("resumed", 3)] * 3
    assert (tmp_path / "out").read_bytes() == b"L\n" * 300


@pytest.mark.parametrize("wrong", ["", "0", "3-2", "a-b", "-1", "1-", "1-2-3"])
def test_a_range_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected A-B, two numbers from 1 up"):
        shard_range(wrong)


@pytest.mark.parametrize("name", ["out", "out[1]*"])
def test_a_range_may_end_behind_the_last_shard(job: Job, tmp_path: Path, name: str) -> None:
    job = dataclasses.replace(job, outputs=(str(tmp_path / name),))
    assert finish(job, shards="2-99") is None
    assert finish(job, shards="50-60") is None
    assert finish(job) == {"lines": 10}
    assert (tmp_path / name).read_bytes() == EXPECTED
    assert sorted(os.listdir(tmp_path)) == ["in", name]


class Endless(Shouting):
    """Says that it works, and does not end."""

    def __call__(self, item: Lines) -> Result:
        sys.stdout.write("working\n")
        sys.stdout.flush()
        threading.Event().wait()
        raise AssertionError


RUN = f"{__name__}:work_without_end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int)


def work_without_end(args: argparse.Namespace) -> int:
    """The work of a command: a job in the current folder that never ends by itself."""
    finish(job_in(Path()), kind=Endless, jobs=args.jobs)
    return 0


def run_endless_command(jobs: int) -> None:
    """A program that a terminal may end, even under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.exit(run_command(Program("job", "", "", {"endless": Command(__name__, "")}), ["endless", f"--jobs={jobs}"]))


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGTERM, 2), (signal.SIGHUP, 1)])
def test_a_program_that_is_told_to_end_leaves_nothing_and_says_nothing(
    tmp_path: Path, number: signal.Signals, jobs: int
) -> None:
    (tmp_path / "in").write_bytes(b"line\n" * 3 * jobs)
    command = [sys.executable, "-c", f"from {__name__} import run_endless_command; run_endless_command({jobs})"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True, cwd=tmp_path) as program:
        assert program.stdout is not None
        assert [program.stdout.readline() for _ in range(jobs)] == ["working\n"] * jobs
        assert (tmp_path / ".out.hybridmt.journal").exists()
        program.send_signal(number)
        _, said = program.communicate(timeout=250)  # which waits for all who could write
    assert (program.returncode, said) == (128 + number, "")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_signal_that_comes_as_a_wait_begins_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt_core.jobs.workers._WAIT", 0.05)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)  # raises KeyboardInterrupt
    over = threading.Event()

    def signals() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        over.wait(5)
        over.set()

    try:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(int).result()  # its thread has begun
            for _ in range(40):
                over.clear()
                with pytest.raises(KeyboardInterrupt):
                    awaited(threads.submit(signals))
                assert not over.is_set()
                over.set()
                threads.submit(int).result()
    finally:
        over.set()
        signal.signal(signal.SIGUSR1, before)
