"""Workers: each is made once, in this process or in others, and then does one item after the other."""

from __future__ import annotations

import collections
import contextlib
import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Protocol, TypeVar

from nmt_core.base.errors import ConfigError, NmtError, what_is_missing
from nmt_core.processes import open_pool

Item = TypeVar("Item")
_Item = TypeVar("_Item", contravariant=True)
_Answer = TypeVar("_Answer", covariant=True)
AHEAD = 2  # items for every worker, so that none is idle
_MOST = 1000  # processes


class Worker(Protocol[_Item, _Answer]):
    """Does one item; ``description`` is what its answers depend on."""

    @property
    def description(self) -> dict[str, Any]:
        """Signatures of the models, by name."""
        ...

    def __call__(self, item: _Item, /) -> _Answer:
        """Do it."""
        ...


OpenWorker = Callable[[int], Worker[Any, Any]]
"""Makes a worker by its number; picklable where it is made elsewhere."""


class Workers(NamedTuple):
    """Several workers, wherever they are.

    ``description`` is what one of them says of itself; they are all alike. ``ask`` has one of them do an item, and
    returns a function that waits for the answer; ``ahead`` is how many items it is given before one is waited for.
    """

    description: dict[str, Any]
    ask: Callable[[Any], Callable[[], Any]]
    ahead: int

    def answers(self, items: Iterable[Any]) -> Iterator[Any]:
        """The answers to the items, in their order."""
        return (answer for _, answer in in_order(((None, self.ask(item)) for item in items), ahead=self.ahead))


def in_order(asked: Iterable[tuple[Item, Callable[[], Any]]], *, ahead: int) -> Iterator[tuple[Item, Any]]:
    """Items with their answers; so many of what was asked are taken before an answer is waited for."""
    waiting: collections.deque[tuple[Item, Callable[[], Any]]] = collections.deque()
    for one in asked:
        waiting.append(one)
        if len(waiting) >= ahead:
            item, answer = waiting.popleft()
            yield item, answer()
    for item, answer in waiting:
        yield item, answer()


@contextlib.contextmanager
def process_workers(open_worker: OpenWorker, jobs: int) -> Iterator[Workers]:
    """``jobs`` processes of this machine. Raises ConfigError for more than it has, NmtError where no worker is made."""
    if jobs > _MOST:
        raise ConfigError(f"--jobs {jobs:,}: at most {_MOST:,} processes of one machine")
    numbers = multiprocessing.get_context("spawn").Queue()
    for number in range(jobs):
        numbers.put(number)
    pool: Any = open_pool(jobs, _begin, open_worker, numbers)

    def submit(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        with _death_reported():
            future: Future[Any] = pool.submit(function, *arguments)
        return _death_reported()(future.result)

    try:
        description = submit(_describe)()
        yield Workers(description, lambda item: submit(_do, item, description), AHEAD * jobs)
    finally:  # answers to what is under way are not needed: the processes end first, then the pool that waits for them
        pool._result_queue._writer.close()  # else it waits for the rest of an answer that is cut off
        for process in pool._processes.values():
            process.terminate()
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _death_reported() -> Iterator[None]:
    """A process that died, as one line: what is asked later is refused, what was asked before is not answered."""
    try:
        yield
    except BrokenProcessPool as error:
        problem = "a worker process died (out of memory?); start the same command again, with fewer --jobs"
        raise NmtError(problem) from error


class Distant:
    """A worker in another process; what goes wrong while it is made comes with each answer."""

    def __init__(self, open_worker: OpenWorker, number: int) -> None:
        self._trouble = ""
        try:
            self._worker = open_worker(number)
            self._description = self._worker.description
        except (NmtError, OSError) as error:
            self._trouble = str(error)
        except ModuleNotFoundError as error:
            self._trouble = what_is_missing(error)
            if not self._trouble:
                raise

    def describe(self) -> dict[str, Any]:
        """What the worker says of itself. Raises NmtError where it could not be made."""
        if self._trouble:
            raise NmtError(self._trouble)
        return self._description

    def do(self, item: Any, expected: dict[str, Any]) -> Any:
        """The worker's answer. Raises NmtError unless it is like the one that said what is ``expected``."""
        found = self.describe()
        if found != expected:
            before, now = difference(expected, found)
            problem = "was a model replaced while they began, or are machines not alike?"
            raise NmtError(f"two workers differ: {before}, and {now}; {problem} Start again")
        try:
            return self._worker(item)
        except NmtError as error:
            raise NmtError(str(error)) from None  # other errors of ours cannot be sent to another process


def difference(before: Any, now: Any) -> tuple[str, str]:
    """The first difference of two values, in mappings the first differing key's, as text."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            if before.get(key) != now[key]:
                return f"{key}={before.get(key)!r}", f"{now[key]!r}"
    return repr(before), repr(now)


_distant: Distant


def _begin(open_worker: OpenWorker, numbers: Any) -> None:
    """The first thing a process does."""
    global _distant
    _distant = Distant(open_worker, numbers.get())
    gc.freeze()  # models and modules are here to stay: do not look through them again and again


def _describe() -> dict[str, Any]:
    return _distant.describe()


def _do(item: Any, expected: dict[str, Any]) -> Any:
    return _distant.do(item, expected)
