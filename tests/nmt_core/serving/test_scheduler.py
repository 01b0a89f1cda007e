"""Which queue uses a device next, in counted iterations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.serving.engine.queue import PRIORITY_WEIGHTS, SHORT_ITERATION, BatchQueue, Job, Queues
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits


def queues_of_a_device() -> Queues[str]:
    return Queues(Limits(queue=1000, client_queue=1000, delay=0.0))


def one_item(client: str, tokens: int = 1) -> Job:
    return Job(client, [Item(None, tokens)])


class Device:
    """Iterations of priority classes that last as long as is said; nothing is computed."""

    def __init__(self) -> None:
        self.queues = queues_of_a_device()
        self.jobs: dict[str, Job] = {}

    def queue(self, priority: str) -> BatchQueue[str]:
        """The only queue of a class."""
        return self.queues.queues["key", priority]

    def put(self, priority: str) -> None:
        """A job of a class begins to wait."""
        self.jobs[priority] = one_item("client")
        self.queues.put("key", priority, self.jobs[priority])

    def remove(self, priority: str) -> None:
        """It is done."""
        self.queues.cancel(self.jobs.pop(priority))

    def iterate(self, seconds: float = 0.1) -> str:
        """The class that has the next iteration, of so many seconds."""
        queue, _ = self.queues.choose()
        assert queue is not None
        self.queues.note(queue, tokens=1, begin=0.0, seconds=seconds)
        return queue.priority

    def iterations(self) -> Iterator[str]:
        """The classes that have iterations of a tenth of a second."""
        while True:
            yield self.iterate()


@pytest.mark.parametrize("before", ["interactive", "bulk"])
@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(PRIORITY_WEIGHTS, 2)))
def test_a_class_has_no_credit_for_time_in_which_another_had_the_idle_device(
    before: str, first: str, second: str
) -> None:
    """One class works for a minute. Then all are idle, then another begins, and then the one that waits too long."""
    device = Device()
    device.put(before)
    device.iterate(seconds=60.0)
    device.remove(before)
    device.put(first)
    assert device.iterate() == first
    device.put(second)
    taken = [priority for priority, _ in zip(device.iterations(), range(10), strict=False)]
    assert second in taken[:2]
    assert {first, second} == set(taken)


@given(st.lists(st.tuples(st.sampled_from(list(PRIORITY_WEIGHTS)), st.sampled_from([0.1, 10.0])), max_size=40))
def test_whoever_arrives_is_at_most_a_turn_behind(steps: list[tuple[str, float]]) -> None:
    """Jobs come and go in any order. Who has work at the same time is at most one turn apart."""
    device = Device()
    for priority, seconds in steps:
        if priority in device.jobs:
            device.remove(priority)
        else:
            device.put(priority)
        if device.jobs:
            device.iterate(seconds)
    for priority in PRIORITY_WEIGHTS:
        if priority not in device.jobs:
            device.put(priority)
    used = [device.queue(priority).used for priority in PRIORITY_WEIGHTS]
    assert max(used) - min(used) <= 10.0 / min(PRIORITY_WEIGHTS.values()) + 1e-9


def test_classes_have_a_busy_device_by_their_weights() -> None:
    device = Device()
    for priority in PRIORITY_WEIGHTS:
        device.put(priority)
    taken = [priority for priority, _ in zip(device.iterations(), range(110), strict=False)]
    assert [taken.count(priority) for priority in PRIORITY_WEIGHTS] == [80, 20, 10]


def test_a_queue_that_waits_for_something_else_has_no_credit_for_that_time() -> None:
    """As hybrids do, for Moses."""
    device = Device()
    device.put("long")
    device.iterate()
    blocked = device.queue("long")
    wait, device.queues.wait = device.queues.wait, lambda one: 1.0 if one is blocked else 0.0  # type: ignore[method-assign]
    device.put("interactive")
    assert [device.iterate(seconds=10.0) for _ in range(5)] == ["interactive"] * 5
    device.queues.wait = wait  # type: ignore[method-assign]
    taken = [priority for priority, _ in zip(device.iterations(), range(200), strict=False)]
    assert taken.index("interactive") <= 26  # the share of one iteration of 10 s, not of five


@pytest.mark.parametrize("changed", [False, True])
def test_a_search_that_waits_for_something_else_has_one_iteration_for_who_came_or_left(changed: bool) -> None:
    """Iterations for what has no room are a loop without a pause, next to the one that is waited for."""
    device = Device()
    device.put("interactive")
    queue = device.queue("interactive")
    queue.take(device.jobs.pop("interactive"), 1, most=1)
    queue.work = SimpleNamespace(blocked_for=0.01, waits_for_more=False)  # type: ignore[assignment]
    device.queues.put("key", "interactive", one_item("other"))
    queue.changed = changed
    chosen, wait = device.queues.choose()
    assert (chosen is queue, wait) == ((True, None) if changed else (False, 0.01))


def test_steps_of_a_search_that_clients_share_are_short_and_batches_are_not() -> None:
    """A sentence takes many steps: where they are long, each makes the sentences of others wait."""
    device = Device()
    device.put("interactive")
    queue = device.queue("interactive")

    def seconds(now: float, *, waits_for_more: bool) -> float:
        queue.work = SimpleNamespace(waits_for_more=waits_for_more)  # type: ignore[assignment]
        return device.queues.iteration_seconds(queue, now)

    alone = seconds(10.0, waits_for_more=False)
    other = one_item("other")
    device.queues.put("key", "interactive", other)
    shared = seconds(10.0, waits_for_more=False)
    assert shared < alone / 10
    assert seconds(10.0, waits_for_more=True) == alone
    device.put("bulk")
    assert seconds(10.0, waits_for_more=False) < shared  # others' iterations come between a sentence's steps
    assert shared <= seconds(10.0, waits_for_more=True) < alone
    device.remove("bulk")
    assert seconds(10.0, waits_for_more=False) == shared
    device.queues.cancel(other)
    assert seconds(10.1, waits_for_more=False) == shared  # the next one is expected soon
    assert seconds(60.0, waits_for_more=False) == alone


def test_a_full_queue_says_when_to_ask_again() -> None:
    """When what waits will be done, as fast as the last work; from 0.2 s to 30 s."""
    queues: Queues[str] = Queues(Limits(queue=8, client_queue=8))

    def refused(client: str) -> tuple[str, float | None]:
        with pytest.raises(RpcError) as caught:
            queues.put("key", "interactive", one_item(client))
        return str(caught.value), caught.value.retry_after

    queue = queues.put("key", "interactive", one_item("a", 4))
    queues.put("key", "interactive", one_item("b", 4))  # exactly as much as may wait
    queues.put("key", "bulk", one_item("a", 8))  # which has a queue of its own
    assert refused("c") == ("the queue is full (8 tokens wait); try again later", 1.0)
    for tokens, seconds, wait in ((10, 5.0, 4.0), (10_000, 0.0, 0.2), (0, 1e6, 30.0)):
        queues.note(queue, tokens=tokens, begin=0.0, seconds=seconds)
        assert refused("c")[1] == pytest.approx(wait)


def seconds_of_keys(jobs: list[tuple[str, str]], seconds: dict[str, float], total: float) -> dict[str, float]:
    """The seconds that each key of a class has of so many, with iterations that long; jobs are clients and keys."""
    queues = queues_of_a_device()
    for client, key in jobs:
        queues.put(key, "interactive", one_item(client))
    used = dict.fromkeys(seconds, 0.0)
    while sum(used.values()) < total:
        queue, _ = queues.choose()
        assert queue is not None
        queues.note(queue, tokens=1, begin=0.0, seconds=seconds[queue.key])
        used[queue.key] += seconds[queue.key]
    return used


MANY = [f"key {number}" for number in range(8)]


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [
        ([*(("greedy", key) for key in MANY), ("other", "mine")], dict.fromkeys(MANY, 0.02) | {"mine": 0.005}),
        ([("a", "batches"), ("b", "mine")], {"batches": 0.5, "mine": 0.005}),
        (
            [*((f"client {number}", "shared") for number in range(64)), ("other", "mine")],
            {"shared": 0.02, "mine": 0.005},
        ),
    ],
    ids=["a client with eight keys", "long iterations", "a key of many clients"],
)
def test_a_client_has_half_of_the_device_next_to(jobs: list[tuple[str, str]], seconds: dict[str, float]) -> None:
    """One client had eight ninths of it by its options; iterations of 0.5 s made each step of a sentence wait."""
    used = seconds_of_keys(jobs, seconds, 100.0)
    assert used["mine"] == pytest.approx(50.0, abs=0.6)
    others = [found for key, found in used.items() if key != "mine"]
    assert others == [pytest.approx(50.0 / len(others), abs=0.6)] * len(others)


@pytest.mark.parametrize("idle", [False, True])
def test_who_comes_to_a_key_of_a_client_with_many_does_not_wait_for_the_others(idle: bool) -> None:
    """A turn counts eightfold for one of eight keys: after one of 0.3 s all others had as much before the next."""
    queues = queues_of_a_device()
    jobs = {f"key {number}": one_item("greedy") for number in range(8)}
    for key, job in jobs.items():
        queues.put(key, "interactive", job)

    def turn(seconds: float) -> str:
        queue, _ = queues.choose()
        assert queue is not None
        queues.note(queue, tokens=1, begin=0.0, seconds=seconds)
        return queue.key

    first = turn(0.3)
    if idle:
        queues.cancel(jobs[first])
    queues.put(first, "interactive", one_item("other"))
    waited = 0.0
    while turn(0.02) != first:
        waited += 0.02
    assert waited <= 0.5
    assert [turn(0.02) for _ in range(100)].count(first) == pytest.approx(50, abs=10)


def test_who_left_before_a_second_try_is_counted_no_more() -> None:
    queues = queues_of_a_device()
    jobs = [one_item("gone"), one_item("here")]
    (queue,) = {queues.put("key", "interactive", job) for job in jobs}
    queue.retries.append([entry for job in jobs for entry in queue.take(job, 9, most=1)])
    queue.running.clear()
    jobs[0].cancelled = True
    assert [entry.job for entry in queue.retry()] == jobs[1:] and dict(queue.clients) == {"here": 1}


def test_iterations_are_short_next_to_another_key_of_the_class() -> None:
    queues = queues_of_a_device()
    scores = queues.put("scores", "interactive", one_item("a"))
    assert queues.iteration_seconds(scores, 10.0) == 0.5
    other = one_item("b")
    sentences = queues.put("sentences", "interactive", other)
    assert queues.iteration_seconds(scores, 10.0) == SHORT_ITERATION
    queues.cancel(other)
    queues.note(sentences, tokens=1, begin=10.0, seconds=0.1)
    assert queues.iteration_seconds(scores, 11.0) == SHORT_ITERATION  # the next one is expected soon
    assert queues.iteration_seconds(scores, 60.0) == 0.5
