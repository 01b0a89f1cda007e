"""The processes of a data-parallel training run, which all make the same updates.

Each has a *rank*, computes the gradients of its share of an update's microbatches, and gets the sum of all. Sums are
added in an order that is fixed by the numbers of the microbatches, whatever process has which: neighbours in pairs
as often as their number is even, then from left to right. So the bits depend on the number of microbatches, not on
that of processes, and on no algorithm of the library that carries them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from nmt_core.base.errors import ConfigError, ModelError, NmtError

Value = TypeVar("Value")
_LONGEST_WAIT = datetime.timedelta(days=7)  # the others wait while one validates; a lost process is noticed otherwise
_LONGEST_MEETING = datetime.timedelta(minutes=10)
_LONGEST_SUM = datetime.timedelta(minutes=10)  # of gradients on GPUs: all come to it within an update's time


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
        while self._parts and self._parts[-1][0] == pairings < self._most:
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
        raise LostProcess(f"the {ranks.size} processes did not meet at {meeting} ({_first_line(error)})") from error
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
        raise LostProcess(f"{problem}; --resume goes on from the last saved state ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


def _gather(whole: Tensor, part: Tensor, group: dist.ProcessGroup | None) -> None:
    """Put the parts of all processes one behind the other."""
    gather: Callable[..., Any] = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    gather(whole, part, group=group)


def flat(tensors: Sequence[Tensor], buffer: Tensor | None = None) -> Tensor:
    """All numbers in one vector: in ``buffer``, which has as many, or a new one."""
    return torch.cat([tensor.flatten() for tensor in tensors], out=buffer)
