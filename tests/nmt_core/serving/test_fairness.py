"""No one waits for a stranger; and a device whose thread fails leaves nobody waiting."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.round_robin import RoundRobin
from nmt_core.serving.engine.queue import Job
from nmt_core.serving.engine.work import Item, StepWork
from nmt_core.serving.errors import RpcError
from nmt_core.serving.telemetry import Metrics
from tests.nmt_core.serving.in_process import serving
from tests.nmt_core.serving.support import metrics_of, until
from tests.nmt_core.serving.test_engine import Countdown, asked, batches, submit, unthreaded


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=30), st.integers(1, 20))
def test_every_job_has_its_turn_and_each_clients_are_in_order(jobs: list[tuple[str, int]], quantum: int) -> None:
    queue: RoundRobin[tuple[str, int, int]] = RoundRobin(quantum)
    for number, (client, tokens) in enumerate(jobs):
        queue.put(client, (client, number, tokens))
    found = []
    while queue:
        job = queue.first()
        found.append(job)
        queue.use(job[2])
        assert queue.remove(job[0], job)
    for client in "abc":
        assert [number for name, number, _ in found if name == client] == [
            number for number, (name, _) in enumerate(jobs) if name == client
        ]
    assert len(found) == len(jobs)


class Sized(Countdown):
    """Items are their numbers of tokens, and never end by themselves."""

    @property
    def tokens(self) -> float:
        return float(sum(self.live.values()))

    def step(self):
        return []


async def test_a_client_that_has_nothing_running_enters_a_full_batch(open_engine) -> None:
    decoder = Countdown(pause=0.002)
    engine = open_engine(lambda key: StepWork("test", decoder, most=10))
    first = asked(engine, "x", [2000] * 10, client="a")
    await until(lambda: len(decoder.live) == 10)
    assert await submit(engine, "x", [5], client="b") == ["done"]
    assert len(decoder.live) == 10  # of the first client, which goes on
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


class Waiting:
    """A queue, and its iterations with a search of ten tokens."""

    def __init__(self) -> None:
        self.work = StepWork("test", Sized(), most=10)
        self._engine = unthreaded(lambda key: self.work)
        self.queue = self._engine._queues.put("key", "interactive", Job("first", [Item(1, 1)]))
        self.iterate()
        (entry,) = self.queue.running.values()
        self.end(entry.job)

    def put(self, client: str, tokens: int, deadline: float | None = None) -> Job:
        job = Job(client, [Item(tokens, tokens)], deadline)
        self._engine._queues.put("key", "interactive", job)
        return job

    def iterate(self) -> None:
        self._engine._iterate(self.queue)

    def end(self, job: Job) -> None:
        """It leaves the search, if it is there."""
        job.cancelled = True
        self.iterate()


def test_what_needs_a_batch_for_itself_is_not_passed_for_ever() -> None:
    """Of three other clients one begins whenever another one's ends: there is no moment without any of them."""
    waiting = Waiting()
    running = waiting.put("b", 6)
    waiting.iterate()
    large = waiting.put("a", 30)
    for turn in range(20):
        following = waiting.put("cd"[turn % 2], 6)
        waiting.iterate()
        waiting.end(running)
        waiting.iterate()
        running = following
    assert large.taken


def test_a_newcomer_whose_deadline_has_passed_is_not_let_in() -> None:
    waiting = Waiting()
    waiting.put("a", 6)
    waiting.iterate()
    waiting.put("a", 6)
    late, soon = waiting.put("b", 6, deadline=time.monotonic() - 1.0), waiting.put("c", 6)
    waiting.iterate()
    assert (late.taken, late.missing) == (0, 0)
    assert soon.taken
    assert waiting.queue.waiting_tokens.total() == 6


async def test_a_thread_that_fails_fails_its_jobs_and_begins_anew(open_engine, monkeypatch) -> None:
    engine = open_engine(batches(lambda key, items: items))
    choose, broken = engine._queues.choose, [True]

    def fails_once():
        if broken.pop() if broken else False:
            raise RuntimeError("outside of what is guarded")
        return choose()

    monkeypatch.setattr(engine._queues, "choose", fails_once)
    with pytest.raises(RpcError, match="its log says more"):
        await asyncio.wait_for(submit(engine, "x", [1]), 10)
    assert await asyncio.wait_for(submit(engine, "x", [2]), 10) == [2]
    assert engine.waiting_tokens == engine.running_items == 0


async def test_a_device_that_fails_again_and_again_is_down_and_health_says_so(monkeypatch) -> None:
    metrics = Metrics()

    def up() -> float | None:
        return metrics.registry.get_sample_value("nmt_device_up", {"device": "cpu"})

    def fails():
        raise MemoryError

    async with serving(metrics=metrics) as running:
        server, engine = running.server, running.engine
        assert (server.health.serving, up()) == (True, 1)
        monkeypatch.setattr(engine._queues, "choose", fails)
        for _ in range(5):
            with pytest.raises(RpcError):
                await asyncio.wait_for(submit(engine, "key", [1]), 10)
        await until(lambda: engine.down)
        assert up() == 0
        with pytest.raises(RpcError, match=r"^the device cpu has failed; ask another server$") as caught:
            await submit(engine, "key", [1])
        assert (caught.value.reason, caught.value.retry_after) == ("DEVICE_FAILED", 1.0)
        await until(lambda: not server.health.serving)


async def test_works_that_are_busy_when_nobody_will_use_them_again_are_forgotten_when_they_are_done(
    open_engine,
) -> None:
    release = threading.Event()

    def run(key, items):
        assert release.wait(60)
        return items

    engine = open_engine(batches(run))
    queues = engine._queues.queues
    running = asked(engine, "old", [1])
    await until(lambda: engine.running_items == 1)
    waiting = asked(engine, "older", [1])
    await until(lambda: engine.waiting_tokens == 1)
    engine.forget(lambda key: key != "new")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    release.set()
    await running
    await submit(engine, "old", [2])  # of a call that has the old model
    await submit(engine, "new", [2])
    await until(lambda: [key for key, _ in queues] == ["new"])


def test_requests_for_metrics_that_stop_half_way_delay_no_others(server) -> None:
    host, _, port = server.metrics.removeprefix("http://").removesuffix("/metrics").rpartition(":")
    half = [socket.create_connection((host, int(port)), timeout=10) for _ in range(50)]
    for one in half:
        one.sendall(b"GET /metrics HTTP/1.1\r\n")
    assert metrics_of(server)
    for one in half:
        one.close()
