"""Processes that each make a worker once and then do one item after the other, answers in order.

One works inside the program itself; more are processes of their own.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, Protocol, Self, TypeVar

from nmt_core.base.errors import FULL_GPU, ConfigError, NmtError, is_full_gpu, what_is_missing
from nmt_core.jobs.journal import difference
from nmt_core.processes import ask_in_order, open_pool, orderly_end

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_Item = TypeVar("_Item", contravariant=True)
_Answer = TypeVar("_Answer", covariant=True)
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


class Workers(Protocol[_Item, _Answer]):
    """Several workers, wherever they are, for the length of a ``with`` block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def description(self) -> dict[str, Any]:
        """What one of the workers says of itself; they are all alike."""
        ...

    def map(self, items: Iterable[_Item], /) -> Iterator[_Answer]:
        """The answers in the order of the items, of which only a few are taken ahead."""
        ...


Engine = Callable[[Callable[[int], Worker[Any, Any]], int], Workers[Any, Any]]
"""Begins so many workers, which a function makes by their number."""


class LocalWorkers(contextlib.AbstractContextManager[Any], Generic[Item, Answer]):
    """``jobs`` workers made by ``open_worker``, which must be picklable where there are several."""

    def __init__(self, open_worker: Callable[[int], Worker[Item, Answer]], jobs: int) -> None:
        if jobs > _MOST:
            raise ConfigError(f"--jobs {jobs:,}: at most {_MOST:,} processes of one machine")
        self._signals = contextlib.ExitStack()
        self._own = open_worker(0) if jobs == 1 else None
        self._signals.enter_context(orderly_end())
        self._pool: ProcessPoolExecutor | None = None
        self._jobs = jobs
        if jobs > 1:
            numbers = multiprocessing.get_context("spawn").Queue()
            for number in range(jobs):
                numbers.put(number)
            self._pool = open_pool(jobs, _begin, open_worker, numbers)

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            # what is under way is not waited for: its answer would be thrown away
            processes = list((getattr(self._pool, "_processes", None) or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
        self._signals.close()

    @property
    def description(self) -> dict[str, Any]:
        """What one of the workers says of itself; they are all alike."""
        if self._own is not None:
            return self._own.description
        assert self._pool is not None
        return dict(self._patiently(self._pool.submit(_describe)))

    def map(self, items: Iterable[Item]) -> Iterator[Answer]:
        """The answers in the order of the items, of which only a few are taken ahead."""
        if self._own is not None:
            own = self._own
            yield from (ask_worker(own, item) for item in items)
            return
        pool, expected = self._pool, self.description
        assert pool is not None

        def ask(item: Item) -> Future[Answer]:
            with _death_reported():
                return pool.submit(_do, item, expected)

        yield from map(self._patiently, ask_in_order(ask, items, jobs=self._jobs))

    def _patiently(self, future: Future[Any]) -> Any:
        with _death_reported():
            return future.result()


@contextlib.contextmanager
def _death_reported() -> Iterator[None]:
    """A process that died, as one line: what is asked later is refused, what was asked before is not answered."""
    try:
        yield
    except BrokenProcessPool as error:
        problem = "a worker process died (out of memory?); start the same command again, with fewer --jobs"
        raise NmtError(problem) from error


_worker: Worker[Any, Any] | None = None
_description: dict[str, Any] = {}
_trouble = ""


def _begin(open_worker: Callable[[int], Worker[Any, Any]], numbers: Any) -> None:
    """The first thing a process does; what goes wrong comes with the first answer."""
    global _worker, _description, _trouble
    try:
        _worker = open_worker(numbers.get())
        _description = _worker.description
    except NmtError as error:
        _trouble = str(error)
    except ModuleNotFoundError as error:
        _trouble = missing_package(error)
    gc.freeze()  # models and modules are here to stay: do not look through them again and again


def missing_package(error: ModuleNotFoundError) -> str:
    """What to install. Raises the error itself where the package is none of those that extras bring."""
    problem = what_is_missing(error)
    if not problem:
        raise error
    return problem


def _ready() -> Worker[Any, Any]:
    if _worker is None:
        raise NmtError(_trouble)
    return _worker


def _describe() -> dict[str, Any]:
    _ready()
    return _description


def _do(item: Any, expected: dict[str, Any]) -> Any:
    """The answer of this process' worker. Raises NmtError unless it is like the one that said what is ``expected``."""
    worker = _ready()
    if _description != expected:
        before, now = difference(expected, _description)
        raise NmtError(f"two workers differ: {before}, and {now}; was a model replaced while they began? Start again")
    try:
        return ask_worker(worker, item)
    except NmtError as error:
        raise NmtError(str(error)) from None  # other errors of ours cannot be sent to another process


def ask_worker(worker: Worker[Item, Answer], item: Item) -> Answer:
    """Its answer. Raises NmtError, also where a GPU has no memory left."""
    try:
        return worker(item)
    except RuntimeError as error:
        if not is_full_gpu(error):
            raise
        raise NmtError(FULL_GPU) from error
