"""Workers: each is made once, in this process or in others, and then does one item after the other."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, Protocol, TypeVar

from nmt_core.base.errors import ConfigError, NmtError, what_is_missing
from nmt_core.jobs.journal import difference
from nmt_core.processes import open_pool

Item = TypeVar("Item")
Answer = TypeVar("Answer")
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


class Workers(Protocol[_Item, _Answer]):
    """Several workers, wherever they are; ``ahead`` is how many items they are given before an answer is waited for."""

    ahead: int

    @property
    def description(self) -> dict[str, Any]:
        """What one of the workers says of itself; they are all alike."""
        ...

    def ask(self, item: _Item, /) -> Callable[[], _Answer]:
        """Have one of them do the item; the function waits for its answer."""
        ...


def in_order(
    ask: Callable[[Item], Callable[[], Answer]], items: Iterable[Item], *, ahead: int
) -> Iterator[tuple[Item, Answer]]:
    """The items with their answers, of which ``ask`` is asked a few ahead."""
    waiting: collections.deque[tuple[Item, Callable[[], Answer]]] = collections.deque()
    for one in items:
        waiting.append((one, ask(one)))
        if len(waiting) >= ahead:
            item, answer = waiting.popleft()
            yield item, answer()
    for item, answer in waiting:
        yield item, answer()


class OwnWorker(Generic[Item, Answer]):
    """A worker inside the program, which does an item when its answer is waited for."""

    ahead = 1

    def __init__(self, worker: Worker[Item, Answer]) -> None:
        self._worker = worker

    @property
    def description(self) -> dict[str, Any]:
        """What the worker says of itself."""
        return self._worker.description

    def ask(self, item: Item) -> Callable[[], Answer]:
        """What does the item."""
        return functools.partial(self._worker, item)


class ProcessWorkers(contextlib.AbstractContextManager[Any], Generic[Item, Answer]):
    """``jobs`` processes of this machine, each with a worker."""

    def __init__(self, open_worker: OpenWorker, jobs: int) -> None:
        if jobs > _MOST:
            raise ConfigError(f"--jobs {jobs:,}: at most {_MOST:,} processes of one machine")
        self.ahead = AHEAD * jobs
        numbers = multiprocessing.get_context("spawn").Queue()
        for number in range(jobs):
            numbers.put(number)
        self._pool = open_pool(jobs, _begin, open_worker, numbers)

    def __exit__(self, *_: object) -> None:
        # what is under way is not waited for: its answer would be thrown away
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """What the first of the workers says of itself."""
        return dict(self._submit(_describe)())

    def ask(self, item: Item) -> Callable[[], Answer]:
        """Have the next free process do the item."""
        return self._submit(_do, item, self.description)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        with _death_reported():
            future = self._pool.submit(function, *arguments)
        return _death_reported()(future.result)


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
