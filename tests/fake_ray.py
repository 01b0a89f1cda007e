"""What stands for Ray in tests: actors in this process, some of which are lost and made again."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

OBJECT_STORE_MINIMUM_MEMORY_BYTES = 75 * 1024 * 1024  # ray._private.ray_constants


class Lost(Exception):
    """The actor has ended."""


class TaskError(Exception):
    """Something went wrong in an actor."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class FakeRay:
    """The module; ``dies`` says, of an actor's number and an item, whether that ends the actor."""

    exceptions = SimpleNamespace(
        RayActorError=Lost, ObjectLostError=Lost, RayTaskError=TaskError, RaySystemError=ConnectionError
    )

    def __init__(self, dies: Callable[[int, Any], bool] = lambda number, item: False) -> None:
        self.dies = dies
        self.losses = 0
        self.is_shut_down = False
        self.lock = threading.Lock()

    def init(self, object_store_memory: int = OBJECT_STORE_MINIMUM_MEMORY_BYTES, **_: Any) -> None:
        if object_store_memory < OBJECT_STORE_MINIMUM_MEMORY_BYTES:
            raise ValueError("Attempting to cap object store memory usage")
        self.is_shut_down = False

    def shutdown(self) -> None:
        self.is_shut_down = True

    def put(self, item: Any) -> Any:
        return item

    def remote(self, **_: Any) -> Callable[[type], Any]:
        return lambda kind: SimpleNamespace(remote=lambda *arguments: Actor(self, kind, arguments))

    def wait(self, references: Sequence[Any], timeout: float | None = None) -> tuple[list[Any], list[Any]]:
        if self.is_shut_down:
            raise ConnectionError
        return [*references[:1]], [*references[1:]]

    def get(self, reference: Any) -> Any:
        if isinstance(reference, Exception):
            raise reference
        return reference


class Actor:
    """Does at once what it is asked."""

    def __init__(self, ray: FakeRay, kind: type, arguments: Sequence[Any]) -> None:
        self._ray, self._kind, self._arguments = ray, kind, arguments
        self._made: Any = None
        self.do = SimpleNamespace(remote=self._do)
        self.describe = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._describe))

    def _describe(self) -> Any:
        with self._ray.lock:
            if self._made is None:
                self._made = self._kind(*self._arguments)
            return self._answer(self._made.describe)

    def _do(self, item: Any, expected: Any) -> Any:
        with self._ray.lock:
            if self._ray.dies(self._arguments[1], item):
                self._ray.losses += 1
                self._made = None
                return Lost()
            return self._answer(self._made.do, item, expected)

    def _answer(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except Exception as error:
            return TaskError(error)


def first_two_lost() -> FakeRay:
    """One of which actors 0 and 1 are lost with the second item that they have."""
    asked: collections.Counter[int] = collections.Counter()

    def dies(number: int, _: Any) -> bool:
        asked[number] += 1
        return number < 2 and asked[number] == 2

    return FakeRay(dies)
