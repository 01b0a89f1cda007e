"""Workers: each is made once, in this process or in others, and then does one item after the other."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import multiprocessing
import pickle
import queue
import resource
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, Protocol, TypeVar

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.processes import begin_process, interrupts_held_back

Item = TypeVar("Item")
AHEAD = 2  # items for every worker, so that none is idle
_HANDLES = 4  # of files, that a process takes here at most
_WAIT = 1.0  # seconds


class Worker(Protocol):
    """Does one item."""

    @property
    def description(self) -> dict[str, Any]:
        """What the answers depend on: signatures of models, by name."""
        ...

    def __call__(self, item: Any, /) -> Any:
        """Do it."""
        ...


OpenWorker = Callable[[int], Worker]
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


def awaited(answer: Future[Any]) -> Any:
    """The answer, when it is there. Python can miss a signal just as a wait begins: each wait is short."""
    while not wait([answer], timeout=_WAIT).done:
        pass
    return answer.result()


@contextlib.contextmanager
def process_workers(open_worker: OpenWorker, jobs: int) -> Iterator[Workers]:
    """``jobs`` processes of this machine. Raises ConfigError for too many, NmtError where no worker is made."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if jobs > handles // _HANDLES:
        problem = f"at most {handles // _HANDLES:,} processes with {handles:,} open files"
        raise ConfigError(f"--jobs {jobs:,}: {problem}; give fewer, or raise 'ulimit -n'")
    idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()
    with ThreadPoolExecutor(jobs) as threads, contextlib.ExitStack() as stack:
        with interrupts_held_back():
            for number in range(jobs):
                process, connection = _start(open_worker, number)
                stack.callback(process.join)
                stack.callback(process.kill)  # first: answers to what is under way are not needed
                idle.put(connection)

        def ask(method: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
            return functools.partial(awaited, threads.submit(_ask, idle, method, *arguments))

        description = ask(Distant.describe)()
        yield Workers(description, lambda item: ask(Distant.do, item, description), AHEAD * jobs)


def _start(open_worker: OpenWorker, number: int) -> tuple[BaseProcess, Connection]:
    """A process with a worker, and a connection that nobody else has: it ends with the process."""
    context = multiprocessing.get_context("spawn")  # forked processes inherit the locks of numerical libraries
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, open_worker, number))
    process.start()
    theirs.close()
    return process, ours


def _ask(idle: queue.SimpleQueue[Connection], method: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a process that has nothing to do. There are as many threads as processes."""
    connection = idle.get()
    try:
        connection.send((method, arguments))
        answer = connection.recv()
    except (EOFError, OSError) as error:  # also where an answer is cut off
        problem = "a worker process died (out of memory?); start the same command again, with fewer --jobs"
        raise NmtError(problem) from error
    finally:
        idle.put(connection)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _work(program: Connection, open_worker: OpenWorker, number: int) -> None:
    """The loop of a worker process."""
    begin_process()
    worker = Distant(open_worker, number)
    gc.freeze()  # models and modules are here to stay: do not look through them again and again
    with contextlib.suppress(EOFError, OSError):  # the program has ended
        while True:
            method, arguments = program.recv()
            try:
                answer = ForkingPickler.dumps(method(worker, *arguments))
            except Exception as error:
                answer = _pickled(error)
            program.send_bytes(answer)


def _pickled(error: Exception) -> Any:
    """The pickled error with its traceback; where it cannot be pickled, a RuntimeError with its text."""
    error.add_note(traceback.format_exc())
    with contextlib.suppress(Exception):
        pickled = ForkingPickler.dumps(error)
        pickle.loads(pickled)
        return pickled
    return ForkingPickler.dumps(RuntimeError("\n".join([f"{type(error).__name__}: {error}", *error.__notes__])))


class Distant:
    """A worker in another process; what goes wrong while it is made comes with each answer."""

    def __init__(self, open_worker: OpenWorker, number: int) -> None:
        self._trouble: Exception | None = None
        try:
            self._worker = open_worker(number)
        except Exception as error:
            self._trouble = error

    def describe(self) -> dict[str, Any]:
        """What the worker says of itself. Raises what kept it from being made."""
        if self._trouble is not None:
            raise self._trouble
        return self._worker.description

    def do(self, item: Any, expected: dict[str, Any]) -> Any:
        """The worker's answer. Raises NmtError unless it is like the one that said what is ``expected``."""
        found = self.describe()
        if found != expected:
            before, now = difference(expected, found)
            problem = "was a model replaced while they began, or are machines not alike?"
            raise NmtError(f"two workers differ: {before}, and {now}; {problem} Start again")
        return self._worker(item)


def difference(before: Any, now: Any) -> tuple[str, str]:
    """The first difference of two values, in mappings the first differing key's, as text."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            if before.get(key) != now[key]:
                found = difference(before.get(key), now[key])
                return f"{key}={found[0]}", found[1]
    return repr(before), repr(now)
