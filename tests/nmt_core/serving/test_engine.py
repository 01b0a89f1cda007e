"""The queue in front of a device: what is done together, who goes first, and who suffers from whom."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from google.rpc import code_pb2

from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import BatchWork, Item, StepWork, Unfinished
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits
from tests.nmt_core.serving.support import until


def batches(run: Callable[[object, list], list], **bounds) -> Callable[[object], BatchWork]:
    return lambda key: BatchWork("test", lambda items: run(key, list(items)), **bounds)


async def submit(
    engine: Engine,
    key: object,
    items: Sequence[Any],
    *,
    tokens: Sequence[int] | None = None,
    priority: str = "interactive",
    **whose: Any,
) -> list[Any]:
    """The answers to a request of one part, of one token an item unless they are said."""
    parts = {priority: list(map(Item, items, tokens or [1] * len(items)))}
    [answers] = await engine.submit(key, parts, **whose)
    return answers


def asked(*request: Any, **options: Any) -> asyncio.Task[list[Any]]:
    return asyncio.create_task(submit(*request, **options))


def unthreaded(open_work: Callable[[object], Any], **options: Any) -> Engine:
    """An engine whose iterations are those that the test asks for."""
    engine = Engine(open_work, **options)
    asyncio.run(engine.close())
    return engine


class Countdown:
    """A decoder whose items are numbers of steps; one that starts with ``bad`` breaks the step it begins in."""

    waits = 0.0

    def __init__(self, pause: float = 0.0) -> None:
        self.live: dict[int, int] = {}
        self.pause, self.sizes, self.gone = pause, [], []

    @property
    def tokens(self) -> float:
        return float(len(self.live))

    def admit(self, requests) -> None:
        self.live |= dict(requests)

    def step(self):
        time.sleep(self.pause)
        self.sizes.append(len(self.live))
        if any(left == -1 for left in self.live.values()):
            raise ValueError("broken")
        self.live = {key: left - 1 for key, left in self.live.items()}
        finished = [(key, "done") for key, left in self.live.items() if left <= 0]
        for key, _ in finished:
            del self.live[key]
        return finished

    def cancel(self, keys) -> None:
        self.gone.extend(keys)
        for key in keys:
            del self.live[key]


class HeldUp:
    """Work of batches, or any, that goes on when it is released; ``done`` has its items."""

    def __init__(self) -> None:
        self.begun, self._released, self.done = threading.Event(), threading.Event(), []

    def __call__(self, key=None, items=()):
        self.begun.set()
        assert self._released.wait(60)
        self.done.extend(items)
        return items

    def release(self) -> None:
        self._released.set()


@contextlib.asynccontextmanager
async def held(engine: Engine, tokens: int) -> AsyncIterator[None]:
    """The thread does nothing until so many tokens wait, so that all that is asked for meanwhile is there together."""
    choose, free = engine._queues.choose, threading.Event()
    engine._queues.choose = lambda: choose() if free.is_set() else (None, 0.001)  # type: ignore[method-assign]
    yield
    await until(lambda: engine.waiting_tokens == tokens)
    free.set()


async def test_jobs_of_one_key_that_wait_are_done_together() -> None:
    calls: list[tuple[object, list[int]]] = []

    def run(key, items):
        calls.append((key, items))
        return [item * 2 for item in items]

    engine = Engine(batches(run), limits=Limits(delay=0.5))
    async with held(engine, 4):
        tasks = [asked(engine, key, items) for key, items in [("x", [1]), ("y", [2]), ("x", [3, 4]), ("x", [5])]]
        await until(lambda: engine.waiting_tokens == 5)
        tasks[3].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    await engine.close()
    with pytest.raises(RpcError) as caught:
        await submit(engine, "x", [6])
    assert str(caught.value) == "the server is shutting down; ask another one, or try again later"
    assert (caught.value.code, caught.value.reason, caught.value.retry_after) == (code_pb2.UNAVAILABLE, "DRAINING", 1.0)
    first, other, second, cancelled = answers
    assert (first, other, second) == ([2], [4], [6, 8])
    assert isinstance(cancelled, asyncio.CancelledError)
    assert sorted(calls) == [("x", [1, 3, 4]), ("y", [2])]


def test_a_batch_that_fails_again_and_again_is_given_up() -> None:
    calls = []

    def run(items):
        calls.append(len(items))
        raise MemoryError

    work = BatchWork("test", run, most=1000)
    asyncio.run(_one_job(work, 500))
    assert len(calls) < 100


async def _one_job(work: BatchWork, items: int) -> None:
    engine = Engine(lambda key: work)
    answers = await submit(engine, "x", list(range(items)), tokens=[1] * items)
    await engine.close()
    assert all(isinstance(answer, MemoryError) for answer in answers)


async def test_a_large_job_is_cut_and_others_come_in_between(open_engine) -> None:
    sizes: list[int] = []

    def run(key, items):
        sizes.append(len(items))
        return items

    engine = open_engine(batches(run, most=10))
    large, small = await asyncio.gather(
        submit(engine, "x", list(range(35))),
        submit(engine, "x", ["small"], tokens=[50]),
    )
    assert large == list(range(35))
    assert small == ["small"]
    assert sizes == [10, 10, 10, 5, 1]


async def test_sentences_enter_and_leave_a_running_batch(open_engine) -> None:
    decoder = Countdown(pause=0.002)
    order: list[str] = []
    engine = open_engine(lambda key: StepWork("test", decoder, most=2))

    async def ask(name: str, steps: int) -> None:
        assert await submit(engine, "x", [steps]) == ["done"]
        order.append(name)

    async with held(engine, 4):
        together = asyncio.gather(ask("long", 40), ask("a", 5), ask("b", 5), ask("c", 5))
    await together
    assert order == ["a", "b", "c", "long"]
    assert max(decoder.sizes) == 2
    assert len(decoder.sizes) <= 42


async def test_rows_of_a_caller_who_has_gone_are_freed_within_a_step(open_engine) -> None:
    steps = threading.Semaphore(0)

    class Waiting(Countdown):
        """Each of its steps waits for a permit."""

        def step(self):
            assert steps.acquire(timeout=60)
            return super().step()

    decoder = Waiting()
    engine = open_engine(lambda key: StepWork("test", decoder, most=10))
    gone = asked(engine, "x", [10_000, 10_000], tokens=[5, 5])
    await until(lambda: len(decoder.live) == 2)
    gone.cancel()
    await asyncio.wait([gone])
    following = asked(engine, "x", [1], tokens=[10])
    await until(lambda: engine.waiting_tokens == 10)
    steps.release(2)
    assert await following == ["done"]
    assert engine.running_items == 0
    assert len(decoder.gone) == 2
    assert decoder.sizes == [2, 1]  # the step that ran, and one of the next caller alone


async def test_work_whose_deadline_has_passed_is_never_begun(open_engine) -> None:
    work = HeldUp()
    engine = open_engine(batches(work))
    running = asked(engine, "x", ["first"])
    await until(lambda: engine.running_items == 1)
    late = asked(engine, "x", ["late"], deadline=time.monotonic() + 0.05)
    await asyncio.sleep(0.1)
    work.release()
    assert await running == ["first"]
    with pytest.raises(RpcError, match=r"^the deadline passed in the queue$") as caught:
        await late
    assert (caught.value.code, caught.value.reason) == (code_pb2.DEADLINE_EXCEEDED, "DEADLINE")
    assert engine.waiting_tokens == 0
    assert work.done == ["first"]


@pytest.mark.parametrize("kind", ["batch", "step"])
async def test_an_item_that_cannot_be_done_takes_no_other_with_it(open_engine, kind: str) -> None:
    """What failed is repeated in halves, by another decoder: the one that failed lets go of all that it had."""
    decoders: list[Countdown] = []

    def run(items: Sequence[int]) -> Sequence[str]:
        if -1 in items:
            raise ValueError("broken")
        return ["done"] * len(items)

    def open_work(key):
        decoders.append(Countdown())
        return StepWork("test", decoders[-1], most=100) if kind == "step" else BatchWork("test", run)

    engine = open_engine(open_work)
    answers = await submit(engine, "x", [*range(1, 10), -1, *range(1, 10)])
    assert await submit(engine, "x", [2]) == ["done"]
    assert isinstance(answers.pop(9), ValueError)
    assert answers == ["done"] * 18
    assert not any(decoder.live for decoder in decoders)
    assert len(decoders[0].gone) == (19 if kind == "step" else 0)


async def test_a_work_that_cannot_be_opened_is_an_answer(open_engine) -> None:
    def open_work(key):
        if key == "bad":
            raise RuntimeError("no")
        return BatchWork("test", list)

    engine = open_engine(open_work)
    (answer,) = await submit(engine, "bad", [1])
    assert isinstance(answer, RuntimeError)
    assert await submit(engine, "good", [1]) == [1]


async def test_many_random_callers_are_all_answered_or_gone(open_engine) -> None:
    decoders: list[Countdown] = []
    chosen = random.Random(1)

    def open_work(key):
        decoders.append(Countdown())
        return StepWork("test", decoders[-1], most=30) if key == "steps" else BatchWork("test", list)

    engine = open_engine(open_work)
    answered = cancelled = 0

    async def caller() -> None:
        nonlocal answered, cancelled
        steps = [chosen.randint(1, 9) for _ in range(chosen.randint(1, 5))]
        call = submit(
            engine,
            chosen.choice(["steps", "batch"]),
            steps,
            tokens=steps,
            priority=chosen.choice(["interactive", "bulk"]),
        )
        try:
            assert len(await asyncio.wait_for(call, chosen.choice([0.001, 0.01, 5]))) == len(steps)
            answered += 1
        except TimeoutError:
            cancelled += 1

    await asyncio.gather(*(caller() for _ in range(400)))
    await until(lambda: engine.running_items == 0)
    assert engine.waiting_tokens == 0
    answered, cancelled = answered, cancelled
    assert answered + cancelled == 400
    assert answered >= 100
    assert not any(decoder.live for decoder in decoders)


class Elsewhere(Countdown):
    """A decoder whose items are done by somebody else, at a time of his own."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False

    @property
    def waits(self) -> float:
        return 0.0 if self.ready else 0.01

    def step(self):
        if self.ready:
            return super().step()
        self.sizes.append(len(self.live))
        return []


async def test_work_that_waits_for_somebody_else_leaves_the_device_to_others(open_engine) -> None:
    decoder, run = Elsewhere(), []

    def open_work(key: object) -> BatchWork | StepWork:
        if key == "hybrid":
            return StepWork("test", decoder, most=100)
        return BatchWork("test", lambda items: run.append(len(items)) or items)

    engine = open_engine(open_work)
    waiting = asked(engine, "hybrid", [1])
    await until(lambda: decoder.sizes)
    for item in range(5):
        assert await submit(engine, "x", [item]) == [item]
    assert len(decoder.sizes) == 1
    gone = asked(engine, "hybrid", [3])
    await until(lambda: len(decoder.live) == 2)  # somebody new is let in
    gone.cancel()
    await until(lambda: decoder.gone)  # and who has gone let out
    assert not waiting.done()
    decoder.ready = True
    answer = await waiting
    assert answer == ["done"]


async def test_a_batch_that_takes_long_leaves_turns_to_others_and_what_is_cancelled_is_not_done(open_engine) -> None:
    ran: list[tuple[object, list]] = []
    first, release = threading.Event(), threading.Event()

    def run(key: object, items: list) -> list:
        ran.append((key, items))
        first.set()
        assert release.wait(60)
        return items

    def open_work(key: object) -> BatchWork:
        choose = (lambda items: [items.index(min(items))]) if key == "long" else None
        return BatchWork("test", lambda items: run(key, list(items)), choose=choose)

    engine = open_engine(open_work)
    async with held(engine, 5):
        long = asked(engine, "long", [3, 1, 2])
        gone = asked(engine, "long", [4, 5])
    await until(first.is_set)
    short = asked(engine, "short", ["x"])
    await until(lambda: engine.waiting_tokens == 1)
    gone.cancel()
    await asyncio.wait([gone])
    release.set()
    answers = await long, await short
    assert answers == ([3, 1, 2], ["x"])
    assert ran == [("long", [1]), ("short", ["x"]), ("long", [2]), ("long", [3])]


class Unfinishing(Countdown):
    """A countdown whose answers are finished by second jobs."""

    def step(self):
        return [(key, Unfinished(answer, 3)) for key, answer in super().step()]


async def test_second_jobs_finish_what_a_search_has_found(open_engine) -> None:
    finished: list[list[str]] = []
    work = HeldUp()

    def finish(items: Sequence[str]) -> list[str]:
        work()
        finished.append(list(items))
        return [f"finished: {item}" for item in items]

    def open_work(key: object) -> BatchWork | StepWork:
        return StepWork("test", Unfinishing(), most=100, second="finish") if key == "x" else BatchWork("test", finish)

    engine = open_engine(open_work, limits=Limits(queue=10, client_queue=10))
    first = asked(engine, "x", [1, 2], tokens=[4, 4], client="a")
    await until(work.begun.is_set)
    gone = asked(engine, "x", [1], client="b")
    await until(lambda: engine.waiting_tokens == 1)
    gone.cancel()
    await asyncio.wait([gone])
    work.release()
    answers = await first
    assert (engine.waiting_tokens, engine.running_items) == (0, 0)
    assert answers == ["finished: done"] * 2
    assert [one for some in finished for one in some] == ["done"] * 2


async def test_a_second_job_that_fails_is_the_answer(open_engine) -> None:
    def finish(items: Sequence[str]) -> list[str]:
        raise ValueError("broken")

    engine = open_engine(
        lambda key: (
            StepWork("test", Unfinishing(), most=100, second="finish") if key == "x" else BatchWork("test", finish)
        )
    )
    answers = await submit(engine, "x", [1])
    (answer,) = answers
    assert isinstance(answer, ValueError)
