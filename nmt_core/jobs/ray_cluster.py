"""Workers as actors of Ray, on this machine or on a cluster whose machines see the same files.

Ray restarts nothing and repeats nothing here: an actor that is lost is reported as lost (``remote.py``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from nmt_core.base.errors import NmtError
from nmt_core.jobs.remote import Lost
from nmt_core.jobs.workers import Worker, ask_worker, missing_package

_STORE = 256 << 20  # bytes; windows under way are a few megabytes each
_LONGEST_CALL = 20.0  # seconds
_TRIES = 3  # Ray gives itself 15 and 30 seconds to begin, which a busy machine exceeds


class RayCluster:
    """Actors that each hold a worker made by ``open_worker``, with one CPU and ``gpus`` of a GPU each.

    Raises ModuleNotFoundError where Ray is not installed, NmtError where it does not begin or nobody answers at
    ``address``.
    """

    def __init__(
        self, open_worker: Callable[[int], Worker[Any, Any]], *, address: str | None, jobs: int, gpus: float
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address is not None:
            _check_answers(address)
        import ray

        self._ray, self._open_worker = ray, open_worker
        self._connect(address, jobs)
        self._actor = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)(_Actor)

    def start(self, number: int) -> Any:
        """Begin an actor."""
        return self._actor.remote(self._open_worker, number, os.getcwd())

    def describe(self, worker: Any) -> Any:
        """A reference to what its answers depend on."""
        return worker.describe.remote()

    def ask(self, worker: Any, item: Any) -> Any:
        """A reference to the answer."""
        return worker.do.remote(item)

    def wait(self, questions: Sequence[Any], seconds: float) -> Sequence[Any]:
        """The references that are there."""
        ready, _ = self._ray.wait(list(questions), num_returns=1, timeout=seconds)
        return list(ready)

    def answer(self, question: Any) -> Any:
        """Its value. Raises Lost where the actor, or its machine, has gone, and NmtError."""
        try:
            value, problem = self._ray.get(question)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError) as error:
            raise Lost from error
        if problem is not None:
            raise NmtError(problem)
        return value

    def close(self) -> None:
        """End the actors, and a cluster that was begun here."""
        self._ray.shutdown()

    def _connect(self, address: str | None, jobs: int) -> None:
        common = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is not None:
            try:
                self._ray.init(address=address, **common)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise NmtError(f"--engine ray,address={address}: no Ray cluster answers ({_line(error)})") from error
            return
        for attempt in range(1, _TRIES + 1):
            try:
                self._ray.init(
                    address="local", num_cpus=jobs, include_dashboard=False, object_store_memory=_STORE, **common
                )
                return
            except Exception as error:  # Ray raises a plain one
                self._ray.shutdown()
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


class _Actor:
    """Holds a worker; answers are pairs of a value and what went wrong."""

    def __init__(self, open_worker: Callable[[int], Worker[Any, Any]], number: int, folder: str) -> None:
        self._worker: Worker[Any, Any] | None = None
        self._trouble: str | None = None
        try:
            os.chdir(folder)
            self._worker = open_worker(number)
        except (NmtError, OSError) as error:
            self._trouble = str(error)
        except ModuleNotFoundError as error:
            self._trouble = missing_package(error)

    def describe(self) -> tuple[Any, str | None]:
        """What the answers depend on."""
        return None if self._worker is None else self._worker.description, self._trouble

    def do(self, item: Any) -> tuple[Any, str | None]:
        """Do one item."""
        assert self._worker is not None
        try:
            return ask_worker(self._worker, item), None
        except NmtError as error:
            return None, str(error)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
