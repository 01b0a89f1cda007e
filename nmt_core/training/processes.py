"""The processes of a data-parallel training run, which all make the same updates.

Each has a *rank*, computes the gradients of its share of an update's microbatches, and gets the sum of all. Sums are
added in an order that is fixed by the numbers of the microbatches, whatever process has which: neighbours in pairs
as often as their number is even, then from left to right. So the bits depend on the number of microbatches, not on
that of processes, and on no algorithm of the library that carries them.

The first process starts the others, waits for them, ends them, and reports why one ended early; or ``torchrun`` has
started all of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from nmt_core.base.errors import ConfigError, ModelError, NmtError
from nmt_core.base.messages import first_line, say
from nmt_core.processes import begin_process, interrupts_held_back

Value = TypeVar("Value")
_LONGEST_WAIT = datetime.timedelta(days=7)  # the others wait while one validates; a lost process is noticed otherwise
_LONGEST_MEETING = datetime.timedelta(minutes=10)
_LONGEST_SUM = datetime.timedelta(minutes=10)  # of gradients on GPUs: all come to it within an update's time


REMEDY = "--resume goes on from the last saved state"
"""What to do when a process of a run has ended."""


class LostProcess(NmtError):
    """Another process of the run has ended."""


class OrderedSum:
    """The sum of ``count`` vectors, added one after the other, in the fixed order; few of them are kept."""

    def __init__(self, count: int) -> None:
        self._most = (count & -count).bit_length() - 1  # how often the number is even
        self._parts: list[tuple[int, Tensor]] = []  # how often each was paired, and what it is

    def add(self, vector: Tensor) -> None:
        """The next vector, which may be changed from now on."""
        pairings = 0
        while pairings < self._most and self._parts and self._parts[-1][0] == pairings:
            vector = self._parts.pop()[1].add_(vector)
            pairings += 1
        self._parts.append((pairings, vector))

    def finish(self) -> Tensor:
        """The sum of all, in the memory of the first."""
        (_, total), *others = self._parts
        for _, part in others:
            total = total.add_(part)
        return total


@dataclass(frozen=True)
class Ranks:
    """This process is number ``rank`` (from 0) of ``size``, and ``local`` of those on its machine, perhaps of all.

    ``gpus`` adds vectors that are on GPUs; all else goes over the network interfaces of the CPUs.
    """

    rank: int = 0
    size: int = 1
    local: int = 0
    one_machine: bool = True
    gpus: dist.ProcessGroup | None = None

    @property
    def first(self) -> bool:
        """Whether this is the process that validates, saves and reports."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """Which of ``count`` things are of this process."""
        return range(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def total(self, vector: Tensor) -> Tensor:
        """The sum of the vectors of all processes, with the same bits in each. Raises LostProcess."""
        if self.size == 1:
            return vector
        part = -(-len(vector) // self.size)
        sent = torch.nn.functional.pad(vector, (0, part * self.size - len(vector)))
        received = torch.empty_like(sent)
        added, group = OrderedSum(self.size), self.gpus if vector.is_cuda else None
        with _together():
            dist.all_to_all_single(received, sent, group=group)
            for one in received.split(part):
                added.add(one)
            _gather(sent, added.finish(), group)
        return sent[: len(vector)]

    def most(self, *values: float) -> tuple[float, ...]:
        """The largest of each value over the processes. Raises LostProcess."""
        if self.size == 1:
            return values
        found = torch.tensor(values, dtype=torch.float64)
        with _together():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return tuple(found.tolist())

    def from_first(self, make: Callable[[], Value]) -> Value:
        """What ``make`` gives in the first process; the others wait for it. Raises LostProcess."""
        if self.size == 1:
            return make()
        made: list[Any] = [make() if self.first else None]
        with _together():
            dist.broadcast_object_list(made, src=0, device=torch.device("cpu"))
        value: Value = made[0]
        return value

    def shared(self, make: Callable[[], Value]) -> Value:
        """What ``make`` gives: one in the first process, whose files the others read (``data/stored.py``).

        On several machines each process makes its own. Raises LostProcess.
        """
        if not self.one_machine:
            return make()
        value = self.from_first(make)
        self.wait_for_all()  # the first has its files open until all others have them
        return value

    def wait_for_all(self) -> None:
        """Until every process has come here. Raises LostProcess."""
        if self.size > 1:
            with _together():
                dist.all_reduce(torch.zeros(1))  # on the CPU, which dist.barrier may not be

    def check_alike(self, fingerprint: str, problem: str) -> None:
        """Raise ModelError, in all processes, where one has another fingerprint than the first."""
        if self.size == 1:
            return
        found: list[Any] = [None] * self.size
        with _together():
            dist.all_gather_object(found, fingerprint)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise ModelError(f"process {rank + 1} of {self.size} {problem}")


def check_divisible(microbatches: int, processes: int) -> None:
    """Raise ConfigError where so many processes cannot add up microbatches in the order that one would."""
    shares = (1 << power for power in range(microbatches.bit_length()))
    able = sorted({1, *(microbatches // share for share in shares if microbatches % share == 0)})
    if processes not in able:
        raise ConfigError(
            f"training.microbatches {microbatches} cannot be shared by {processes} processes; "
            f"take {' or '.join(map(str, able))}, or other microbatches"
        )


@contextlib.contextmanager
def joined(ranks: Ranks, *, cuda: bool, meeting: str) -> Iterator[Ranks]:
    """The processes can exchange what they have inside the block; ``meeting`` is PyTorch's URL of where they meet.

    A process that waits on a GPU for a lost one does not notice it: PyTorch ends it after ``_LONGEST_SUM``. Raises
    LostProcess where the others do not come.
    """
    try:
        store, rank, size = next(rendezvous(meeting, ranks.rank, ranks.size, timeout=_LONGEST_MEETING))
        store.set_timeout(_LONGEST_MEETING)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=_LONGEST_WAIT)
        gpus = dist.new_group(backend="nccl", timeout=_LONGEST_SUM) if cuda else None
    except (RuntimeError, ValueError) as error:
        raise LostProcess(f"the {ranks.size} processes did not meet at {meeting} ({first_line(error)})") from error
    try:
        yield dataclasses.replace(ranks, gpus=gpus)
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        problem = "another process of this run has ended"
        raise LostProcess(f"{problem}; {REMEDY} ({first_line(error)})") from error


def _gather(whole: Tensor, part: Tensor, group: dist.ProcessGroup | None) -> None:
    """Put the parts of all processes one behind the other."""
    gather: Callable[..., Any] = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    gather(whole, part, group=group)


def flat(tensors: Sequence[Tensor], buffer: Tensor | None = None) -> Tensor:
    """All numbers in one vector: in ``buffer``, which has as many, or a new one."""
    return torch.cat([tensor.flatten() for tensor in tensors], out=buffer)


def can_share(ranks: Ranks) -> bool:
    """Whether there are several processes of one machine, and its system (Linux) has files in memory without names."""
    return ranks.size > 1 and ranks.one_machine and hasattr(os, "memfd_create")


class SharedSum:
    """The sum of the vectors of processes of one machine, in memory that all of them have mapped.

    Each writes its vector there, adds one part of all, and reads the whole sum. The additions are those of
    ``Ranks.total``, but no vector goes over a network interface, which takes several times as much processor time.
    All processes call the same methods in the same order.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._buffers = torch.empty(ranks.size, 0)

    def buffer(self, length: int, dtype: torch.dtype) -> Tensor:
        """Where this process writes its vector of so many numbers; no sum is needed any more. Raises LostProcess."""
        self._ranks.wait_for_all()  # they have used the last sum
        if self._buffers.dtype != dtype or self._buffers.shape[1] < length:
            self._buffers = self._mapped(length, dtype)
        return self._buffers[self._ranks.rank, :length]

    def total(self, length: int) -> Tensor:
        """The sum of the vectors in the buffers; all processes read the same one, and none may change it.

        Raises LostProcess.
        """
        part = self._ranks.share(length)
        added = OrderedSum(self._ranks.size)
        self._ranks.wait_for_all()  # they have written
        for buffer in self._buffers:
            added.add(buffer[part.start : part.stop])
        added.finish()
        self._ranks.wait_for_all()  # they have added; the first buffer has the sum
        return self._buffers[0, :length]

    def _mapped(self, length: int, dtype: torch.dtype) -> Tensor:
        """A buffer for each process, in a file in memory that has no name and ends with the last of them."""
        size = self._ranks.size * length
        made: list[int] = []

        def make() -> str:
            made.append(os.memfd_create("hybridmt"))
            os.posix_fallocate(made[0], 0, size * dtype.itemsize)
            return f"/proc/{os.getpid()}/fd/{made[0]}"

        try:
            buffers = torch.from_file(self._ranks.from_first(make), shared=True, size=size, dtype=dtype)
            self._ranks.wait_for_all()  # the first has its file open until all others have mapped it
        finally:
            for descriptor in made:
                os.close(descriptor)
        return buffers.view(self._ranks.size, length)


_INTERFACE = "GLOO_SOCKET_IFNAME"
_PATIENCE = 20.0  # seconds until a process that waits for one that has ended should have noticed
Follow = Callable[[Ranks], object]


class _Follower(NamedTuple):
    process: BaseProcess
    words: Connection  # empty when it is ready, or what went wrong


def ranks_of_torchrun() -> Ranks | None:
    """What ``torchrun`` says this process is; None where it has not started it."""
    try:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        rank, size, local, here = (int(os.environ[name]) for name in names)
    except (KeyError, ValueError):
        return None
    return Ranks(rank, size, local, one_machine=here == size)


def is_restarted() -> bool:
    """Whether ``torchrun`` has started the processes again, since one was lost."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


@contextlib.contextmanager
def started(processes: int, follow: Follow, *, cuda: bool) -> Iterator[Ranks]:
    """This process is the first of ``processes``; each of the others calls ``follow``, which must be picklable.

    Raises NmtError, which says what happened, where one of them ends before its time.
    """
    with tempfile.TemporaryDirectory(prefix="hybridmt-") as folder:
        meeting = f"file://{folder}/meeting"
        _stay_on_this_machine()
        followers: list[_Follower] = []
        over = threading.Event()
        try:
            with interrupts_held_back():
                followers += [
                    _begin(Ranks(rank, processes, rank), follow, cuda, meeting) for rank in range(1, processes)
                ]
            for follower in followers:
                _wait_until_ready(follower)
            threading.Thread(target=_end_with_the_others, args=(followers, over), daemon=True).start()
            with joined(Ranks(0, processes), cuda=cuda, meeting=meeting) as ranks:
                yield ranks
            for follower in followers:
                follower.process.join(_PATIENCE)
        except LostProcess as error:
            raise NmtError(_cause(followers) or str(error)) from error
        finally:
            over.set()
            for follower in followers:
                follower.process.kill()
                follower.process.join()


def _stay_on_this_machine() -> None:
    """Processes of one machine talk over its loopback interface, whatever its name resolves to."""
    names = [name for _, name in socket.if_nameindex() if name.rstrip("0") == "lo"]
    if names:
        os.environ.setdefault(_INTERFACE, names[0])


def _begin(ranks: Ranks, follow: Follow, cuda: bool, meeting: str) -> _Follower:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_follow, args=(ranks, follow, cuda, meeting, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Follower(process, ours)


def _follow(ranks: Ranks, follow: Follow, cuda: bool, meeting: str, words: Connection) -> None:
    """What another process than the first does."""
    begin_process()
    try:
        words.send("")
        with joined(ranks, cuda=cuda, meeting=meeting) as ranks:
            follow(ranks)
        os._exit(0)  # at once: the first process waits
    except LostProcess:
        os._exit(1)  # it is not the cause, and has nothing to add
    except (NmtError, OSError) as error:
        with contextlib.suppress(OSError):  # the first process was killed, and nobody is left to be told
            words.send(str(error))
        raise SystemExit(1) from None


def _wait_until_ready(follower: _Follower) -> None:
    wait([follower.words, follower.process.sentinel])
    try:
        follower.words.recv()
    except EOFError:
        follower.process.join(_PATIENCE)
        raise LostProcess("another process of this run did not start") from None


def _end_with_the_others(followers: list[_Follower], over: threading.Event) -> None:
    """A process that waits on a GPU does not notice that another has ended: it is ended here."""
    running = {follower.process.sentinel: follower.process for follower in followers}
    while running:
        for sentinel in wait(list(running)):
            process = running.pop(sentinel)  # type: ignore[arg-type]  # of sentinels, which are numbers, wait returns some
            process.join()
            if process.exitcode and not over.wait(_PATIENCE):
                say(_cause(followers) or f"another process of this run has ended; {REMEDY}")
                os._exit(2)


def _cause(followers: list[_Follower]) -> str:
    """What ended a process before its time: its own words, or a signal."""
    for number, follower in enumerate(followers, start=2):
        code, place = _exit_code(follower.process), f"process {number} of {len(followers) + 1}"
        words = ""
        with contextlib.suppress(EOFError, OSError):
            while follower.words.poll():
                words = follower.words.recv()
        if words:
            return f"{place}: {words}"
        if code is not None and code < 0:
            return f"{place} was ended by signal {-code} (out of memory?); {REMEDY}"
    return ""


def _exit_code(process: BaseProcess) -> int | None:
    """How it ended, or None if it goes on. Another thread that waits for it may know this a moment earlier."""
    patience = time.monotonic() + 1.0
    while process.exitcode is None and time.monotonic() < patience:
        process.join(0.05)
        time.sleep(0.005)  # ``join`` returns at once where the system has told the other thread alone
    return process.exitcode
