"""Workers as actors of Ray, on this machine or on a cluster whose machines see the same files.

Ray makes an actor again where one is lost. Its item is done by whichever is ready first; an item that was under way
three times when its actor was lost is taken for the cause.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from nmt_core.base.errors import NmtError
from nmt_core.base.messages import first_line
from nmt_core.jobs.workers import AHEAD, Distant, OpenWorker, Workers, awaited

_STORE = 256 << 20  # bytes; windows under way are a few megabytes each
_LONGEST_CALL = 20.0  # seconds
_LONGEST_START = 600.0
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
_RESTARTS = 100  # of an actor
_TRIES = 3  # of an item; of Ray itself, which gives itself 15 and 30 seconds to begin: a busy machine exceeds them


class Ray(NamedTuple):
    """Actors of Ray, with ``gpus`` GPUs each, on the cluster at ``address``."""

    gpus: float
    address: str | None


class _Task(NamedTuple):
    """An item of that ``place``, in Ray's object store; ``losses`` is how often its actor was lost."""

    place: int
    losses: int
    first: int | None
    item: Any
    answer: Future[Any]

    def blamed(self) -> NmtError:
        """What is said where its actors are lost again and again."""
        lines = f"item {self.place + 1}" if self.first is None else f"the shard that begins at line {self.first:,}"
        problem = f"has ended its worker {self.losses} times (out of memory?); what is finished stays finished"
        return NmtError(f"{lines} {problem}: start the same command again, with fewer --jobs")


@contextlib.contextmanager
def ray_workers(open_worker: OpenWorker, jobs: int, asked: Ray) -> Iterator[Workers]:
    """``jobs`` actors with one CPU each, and a thread here for each of them.

    Raises ModuleNotFoundError where Ray is not installed, NmtError where it does not begin, nobody answers at
    its address, or no actor begins.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = _begun(jobs) if asked.address is None else _joined(asked.address)
    try:
        actor = ray.remote(num_cpus=1, num_gpus=asked.gpus, max_restarts=_RESTARTS)(Distant)
        opened = functools.partial(_open_there, os.getcwd(), open_worker)
        actors = [actor.remote(opened, number) for number in range(jobs)]
        described, _ = ray.wait(list(map(_described, actors)), timeout=_LONGEST_START)
        if not described:
            minutes = _LONGEST_START / 60
            raise NmtError(f"no worker began within {minutes:.0f} minutes; has the cluster a CPU and memory free?")
        description = _answer(ray, described[0])
        tasks: queue.PriorityQueue[_Task] = queue.PriorityQueue()
        for one in actors:
            threading.Thread(target=_serve, args=[ray, one, tasks, description], daemon=True).start()
        places = itertools.count()

        def ask(item: Any) -> Callable[[], Any]:
            task = _Task(next(places), 0, getattr(item, "first", None), ray.put(item), Future())
            tasks.put(task)
            return functools.partial(awaited, task.answer)

        yield Workers(description, ask, AHEAD * jobs)
    finally:
        ray.shutdown()


def _serve(ray: Any, actor: Any, tasks: queue.PriorityQueue[_Task], description: dict[str, Any]) -> None:
    """Whenever the actor is ready, also after it was lost, have it do the first item that waits."""
    lost = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)
    with contextlib.suppress(ray.exceptions.RaySystemError):  # Ray has been shut down
        while ray.wait([_described(actor)]):
            task = tasks.get()
            try:
                task.answer.set_result(_answer(ray, actor.do.remote(task.item, description)))
            except lost:
                again = task._replace(losses=task.losses + 1)
                if again.losses < _TRIES:
                    tasks.put(again)
                else:
                    task.answer.set_exception(again.blamed())
            except Exception as error:
                task.answer.set_exception(error)


def _answer(ray: Any, reference: Any) -> Any:
    """What an actor answers. Raises what went wrong in it."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error


def _described(actor: Any) -> Any:
    """A reference to what an actor says of itself, which it does when it is ready."""
    return actor.describe.options(max_task_retries=-1).remote()


def _open_there(directory: str, open_worker: OpenWorker, number: int) -> Any:
    os.chdir(directory)
    return open_worker(number)


def _begun(jobs: int) -> Any:
    """Ray, begun on this machine, with one CPU for each job. Raises NmtError."""
    import ray

    where = {"address": "local", "num_cpus": jobs, "object_store_memory": _STORE}
    for left in reversed(range(_TRIES)):
        try:
            ray.init(include_dashboard=False, **where, **_QUIET)
            break
        except Exception as error:  # Ray raises a plain one
            ray.shutdown()
            if not left:
                problem = f"Ray did not begin, tried {_TRIES} times ({first_line(error)})"
                raise NmtError(f"{problem}; is the machine too busy? --engine local needs no Ray") from error
    return ray


def _joined(address: str) -> Any:
    """Ray, joined to a cluster. Raises NmtError, at once where HOST:PORT takes no connection: Ray would wait long."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    try:
        if colon and port.isdecimal():
            socket.create_connection((host.strip("[]"), int(port)), timeout=_LONGEST_CALL).close()
        import ray

        ray.init(address=address, **_QUIET)
        return ray
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise NmtError(f"--engine ray,address={address}: no Ray cluster answers ({first_line(error)})") from error
