"""Work of many callers done by one thread, in batches; free of gRPC and of torch.

What waits is counted in tokens and bounded: a full queue refuses at once. Jobs of one ``key`` that
wait together are done together. A job that fails takes only its own batch with it, and a job whose
caller has gone leaves the queue at once.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nmt_core.errors import Overloaded, Unavailable

Run = Callable[[Hashable, Sequence[Any]], Sequence[Any]]
_Result = TypeVar("_Result")


@dataclass(eq=False)
class _Job:
    """Items of one caller, and where their answers go."""

    key: Hashable
    items: Sequence[Any]
    tokens: int
    answer: asyncio.Future[list[Any]] = field(repr=False)


class Batcher:
    """``run(key, items)`` is called in a thread of its own and answers every item, in order.

    ``capacity`` bounds the tokens that wait, ``batch_tokens`` those that are done at once; a single
    job may be larger than either, so that nothing is refused for ever.
    """

    def __init__(self, run: Run, *, capacity: int = 2_000_000, batch_tokens: int = 100_000) -> None:
        self._run, self.capacity, self.batch_tokens = run, capacity, batch_tokens
        self._waiting: collections.deque[_Job] = collections.deque()
        self._tokens = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being done."""
        return self._tokens

    async def submit(self, key: Hashable, items: Sequence[Any], *, tokens: int) -> list[Any]:
        """The answers to ``items``. Raises Overloaded when the queue is full, Unavailable when it is closed."""
        if self._closed:
            raise Unavailable("the server is shutting down; ask another one, or try again later")
        if self._waiting and self._tokens + tokens > self.capacity:
            raise Overloaded(f"the queue is full ({self._tokens} tokens wait); try again later")
        job = _Job(key, items, tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._tokens += tokens
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return await job.answer
        except asyncio.CancelledError:
            self._forget(job)
            raise

    async def in_thread(self, function: Callable[[], _Result]) -> _Result:
        """Call ``function`` in the thread that runs the models, and wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def close(self) -> None:
        """Finish what was accepted, and accept nothing more."""
        self._closed = True
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()

    async def _work(self) -> None:
        while jobs := self._next_batch():
            key, items = jobs[0].key, [item for job in jobs for item in job.items]
            try:
                answers = await self.in_thread(functools.partial(self._run, key, items))
                assert len(answers) == len(items), "a run must answer every item"
            except Exception as error:  # whatever a model raises belongs to the callers of this batch
                for job in jobs:
                    if not job.answer.done():
                        job.answer.set_exception(error)
                continue
            start = 0
            for job in jobs:
                if not job.answer.done():  # its caller may have gone meanwhile
                    job.answer.set_result(list(answers[start : start + len(job.items)]))
                start += len(job.items)

    def _next_batch(self) -> list[_Job]:
        """The job that waited longest and others like it, as many as fit."""
        jobs: list[_Job] = []
        left: collections.deque[_Job] = collections.deque()
        tokens = 0
        for job in self._waiting:
            if job.answer.done():  # its caller has just gone
                self._tokens -= job.tokens
            elif not jobs or (job.key == jobs[0].key and tokens + job.tokens <= self.batch_tokens):
                jobs.append(job)
                tokens += job.tokens
            else:
                left.append(job)
        self._waiting = left
        self._tokens -= tokens
        return jobs

    def _forget(self, job: _Job) -> None:
        """Take a job whose caller has gone out of the queue, if it still waits."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(job)
            self._tokens -= job.tokens
