"""Workers as actors of Ray, on this machine or on a cluster whose machines see the same files.

Ray makes an actor again where one is lost. Its item is done by whichever is ready first; an item that was under way
three times when its actor was lost is taken for the cause.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple

from nmt_core.base.errors import NmtError
from nmt_core.jobs.workers import AHEAD, Answer, Distant, Item, OpenWorker

_STORE = 256 << 20  # bytes; windows under way are a few megabytes each
_LONGEST_CALL = 20.0  # seconds
_LONGEST_START = 600.0
_RESTARTS = 100  # of an actor
_TRIES = 3  # of an item; of Ray itself, which gives itself 15 and 30 seconds to begin: a busy machine exceeds them


class _Task(NamedTuple):
    """An item of that ``place``, in Ray's object store; ``losses`` is how often its actor was lost."""

    place: int
    losses: int
    name: str
    item: Any
    answer: Future[Any]


class RayWorkers(contextlib.AbstractContextManager[Any], Generic[Item, Answer]):
    """``jobs`` actors with one CPU and ``gpus`` of a GPU each, with a thread here for each of them.

    Raises ModuleNotFoundError where Ray is not installed, NmtError where it does not begin or nobody answers at
    ``address``.
    """

    def __init__(self, open_worker: OpenWorker, jobs: int, *, gpus: float, address: str | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address is not None:
            _check_answers(address)
        import ray

        self.ahead = AHEAD * jobs
        self._ray = ray
        _connect(ray, address, jobs)
        actor = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=_RESTARTS)(Distant)
        opened = functools.partial(_open_there, os.getcwd(), open_worker)
        self._actors = [actor.remote(opened, number) for number in range(jobs)]
        self._tasks: queue.PriorityQueue[_Task] = queue.PriorityQueue()
        self._asked = 0

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """What the first actor that is ready says of itself. Raises NmtError where none is."""
        described, _ = self._ray.wait(list(map(_described, self._actors)), timeout=_LONGEST_START)
        if not described:
            minutes = _LONGEST_START / 60
            raise NmtError(f"no worker began within {minutes:.0f} minutes; has the cluster a CPU and memory free?")
        return dict(self._answer(described[0]))

    def ask(self, item: Item) -> Callable[[], Answer]:
        """Have the next actor that is ready do the item."""
        if not self._asked:
            assert self.description
            for actor in self._actors:
                threading.Thread(target=self._serve, args=[actor], daemon=True).start()
        first = getattr(item, "first", None)
        name = f"item {self._asked + 1}" if first is None else f"the shard that begins at line {first:,}"
        task = _Task(self._asked, 0, name, self._ray.put(item), Future())
        self._asked += 1
        self._tasks.put(task)
        return task.answer.result

    def _serve(self, actor: Any) -> None:
        """Whenever the actor is ready, also after it was lost, have it do the first item that waits."""
        lost = (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError)
        with contextlib.suppress(self._ray.exceptions.RaySystemError):  # Ray has been shut down
            while self._ray.wait([_described(actor)]):
                task = self._tasks.get()
                try:
                    task.answer.set_result(self._answer(actor.do.remote(task.item, self.description)))
                except lost:
                    self._put_back(task._replace(losses=task.losses + 1))
                except Exception as error:
                    task.answer.set_exception(error)

    def _put_back(self, task: _Task) -> None:
        """Have the item of a lost actor done again, before those behind it."""
        if task.losses < _TRIES:
            self._tasks.put(task)
            return
        problem = f"has ended its worker {_TRIES} times (out of memory?); what is finished stays finished"
        task.answer.set_exception(NmtError(f"{task.name} {problem}: start the same command again, with fewer --jobs"))

    def _answer(self, reference: Any) -> Any:
        """What an actor answers. Raises its NmtError."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, NmtError) else error from None


def _described(actor: Any) -> Any:
    """A reference to what an actor says of itself, which it does when it is ready."""
    return actor.describe.options(max_task_retries=-1).remote()


def _open_there(directory: str, open_worker: OpenWorker, number: int) -> Any:
    os.chdir(directory)
    return open_worker(number)


def _connect(ray: Any, address: str | None, jobs: int) -> None:
    """Join a cluster, or begin one. Raises NmtError."""
    common = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        try:
            ray.init(address=address, **common)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise NmtError(f"--engine ray,address={address}: no Ray cluster answers ({_line(error)})") from error
        return
    for attempt in range(1, _TRIES + 1):
        try:
            ray.init(address="local", num_cpus=jobs, include_dashboard=False, object_store_memory=_STORE, **common)
            return
        except Exception as error:  # Ray raises a plain one
            ray.shutdown()
            if attempt == _TRIES:
                problem = f"Ray did not begin, tried {_TRIES} times ({_line(error)})"
                raise NmtError(f"{problem}; is the machine too busy? --engine local needs no Ray") from error


def _check_answers(address: str) -> None:
    """Raise NmtError where HOST:PORT takes no connection, for which Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_LONGEST_CALL).close()
    except (OSError, OverflowError) as error:
        raise NmtError(f"--engine ray,address={address}: no Ray cluster answers ({_line(error)})") from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
