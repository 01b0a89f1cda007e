"""Whose turn it is on a device, in counted turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.serving.engine.queue import SHORT_TURN, Scheduler
from nmt_core.serving.lanes import SHARES, Job, Line


class Device:
    """Turns of lanes that last as long as is said; nothing is computed."""

    def __init__(self) -> None:
        self.scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)
        self.jobs: dict[str, Job] = {}

    def put(self, lane: str) -> None:
        """A job of a lane begins to wait."""
        self.jobs[lane] = Job("client", [None], [1], None, _FUTURE)
        self.scheduler.put("key", self.jobs[lane], lane)

    def remove(self, lane: str) -> None:
        """It is done."""
        self.scheduler.remove("key", self.jobs.pop(lane), lane)

    def turn(self, seconds: float = 0.1) -> str:
        """The lane that has the next turn, of so many seconds."""
        chosen, _ = self.scheduler.choose()
        assert chosen is not None
        lane, line = chosen
        self.scheduler.turned(lane, line, tokens=1, begin=0.0, seconds=seconds)
        return next(name for name, one in self.scheduler.lanes.items() if one is lane)

    def turns(self) -> Iterator[str]:
        """The lanes that have turns of a tenth of a second."""
        while True:
            yield self.turn()


_FUTURE: asyncio.Future[list[object]] = asyncio.Future(loop=asyncio.new_event_loop())


@pytest.mark.parametrize("before", ["interactive", "bulk"])
@pytest.mark.parametrize("first", SHARES)
@pytest.mark.parametrize("second", SHARES)
def test_a_lane_has_no_credit_for_time_in_which_another_had_the_idle_device(
    before: str, first: str, second: str
) -> None:
    """One lane works for a minute. Then all are idle, then another begins, and then the one that waits too long."""
    if first == second:
        return
    device = Device()
    device.put(before)
    device.turn(seconds=60.0)
    device.remove(before)
    device.put(first)
    assert device.turn() == first
    device.put(second)
    taken = [lane for lane, _ in zip(device.turns(), range(10), strict=False)]
    assert second in taken[:2]
    assert {first, second} == set(taken)


@given(st.lists(st.tuples(st.sampled_from(list(SHARES)), st.sampled_from([0.1, 10.0])), max_size=40))
def test_whoever_arrives_is_at_most_a_turn_behind(steps: list[tuple[str, float]]) -> None:
    """Jobs come and go in any order. Who has work at the same time is at most one turn apart."""
    device = Device()
    for lane, seconds in steps:
        if lane in device.jobs:
            device.remove(lane)
        else:
            device.put(lane)
        if device.jobs:
            device.turn(seconds)
    for lane in SHARES:
        if lane not in device.jobs:
            device.put(lane)
    used = [lane.used for lane in device.scheduler.lanes.values()]
    assert max(used) - min(used) <= 10.0 / min(SHARES.values()) + 1e-9


def test_a_lane_that_waits_for_somebody_else_has_no_credit_for_that_time() -> None:
    """As hybrids do, for Moses."""
    device = Device()
    device.put("long")
    device.turn()
    line: Line[str] = device.scheduler.lanes["long"].lines["key"]
    pause, device.scheduler._pause = device.scheduler._pause, lambda _, one: 1.0 if one is line else 0.0  # type: ignore[method-assign]
    device.put("interactive")
    assert [device.turn(seconds=10.0) for _ in range(5)] == ["interactive"] * 5
    device.scheduler._pause = pause  # type: ignore[method-assign]
    taken = [lane for lane, _ in zip(device.turns(), range(200), strict=False)]
    assert taken.index("interactive") <= 26  # the share of one turn of 10 s, not of five


@pytest.mark.parametrize(("cost", "admitted"), [(5, True), (9, False)])
def test_a_search_that_waits_for_somebody_else_has_a_turn_for_what_can_enter(cost: int, admitted: bool) -> None:
    """Turns for what has no room are a loop without a pause, beside the one that is waited for."""
    device = Device()
    device.put("interactive")
    line: Line[str] = device.scheduler.lanes["interactive"].lines["key"]
    (entry,) = device.jobs.pop("interactive").take(most=1, room=1, turn=1)
    line.waiting.remove("client", entry.owner)
    line.running[id(entry)] = entry
    line.work = SimpleNamespace(waits=0.01, patient=False, spare=0, room=lambda seconds: int(10 * seconds / 0.02))  # type: ignore[assignment]
    for client in ("client", "other"):  # who share it, so that its turns are short beside another lane
        device.scheduler.put("key", Job(client, [None], [cost], None, _FUTURE), "interactive")
    device.scheduler.lanes["bulk"].last = time.monotonic()
    chosen, pause = device.scheduler.choose()
    assert (chosen is not None, pause) == ((True, None) if admitted else (False, 0.01))


def test_steps_of_a_search_that_clients_share_are_short_and_batches_are_not() -> None:
    """A sentence takes many steps: where they are long, each makes the sentences of others wait."""
    device = Device()
    device.put("interactive")
    lane = device.scheduler.lanes["interactive"]
    line: Line[str] = lane.lines["key"]

    def seconds(now: float, *, patient: bool) -> float:
        line.work = SimpleNamespace(patient=patient)  # type: ignore[assignment]
        return device.scheduler.turn_seconds(lane, line, now)

    alone = seconds(10.0, patient=False)
    device.scheduler.put("key", other := Job("other", [None], [1], None, _FUTURE), "interactive")
    shared = seconds(10.0, patient=False)
    assert shared < alone / 10
    assert seconds(10.0, patient=True) == alone
    device.put("bulk")
    assert seconds(10.0, patient=False) < shared  # others' turns come between a sentence's steps
    assert shared <= seconds(10.0, patient=True) < alone
    device.scheduler.clear()
    device.put("interactive")
    lane = device.scheduler.lanes["interactive"]
    line = lane.lines["key"]
    device.scheduler.put("key", other, "interactive")
    assert seconds(10.0, patient=False) == shared
    device.scheduler.remove("key", other, "interactive")
    assert seconds(10.1, patient=False) == shared  # the next one is expected soon
    assert seconds(60.0, patient=False) == alone


def turns_of_keys(jobs: list[tuple[str, str]], seconds: dict[str, float], total: float) -> dict[str, float]:
    """The seconds that each key of a lane has of so many, with turns that long; jobs are clients and keys."""
    scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)
    for client, key in jobs:
        scheduler.put(key, Job(client, [None], [1], None, _FUTURE), "interactive")
    used = dict.fromkeys(seconds, 0.0)
    while sum(used.values()) < total:
        chosen, _ = scheduler.choose()
        assert chosen is not None
        lane, line = chosen
        scheduler.turned(lane, line, tokens=1, begin=0.0, seconds=seconds[line.key])
        used[line.key] += seconds[line.key]
    return used


def test_a_client_with_many_keys_has_no_more_than_one_with_one() -> None:
    """Options of requests choose keys: with eight kinds of requests one client had eight ninths of the device."""
    many = [f"key {number}" for number in range(8)]
    used = turns_of_keys(
        [*(("greedy", key) for key in many), ("other", "mine")], dict.fromkeys(many, 0.02) | {"mine": 0.005}, 100.0
    )
    assert used["mine"] == pytest.approx(50.0, abs=0.1)
    assert [used[key] for key in many] == [pytest.approx(50.0 / 8, abs=0.1)] * 8


def test_long_turns_of_one_key_are_made_up_for_by_those_of_another() -> None:
    """As many turns for each, one of half a second before every step of a sentence, made it wait for 5 s."""
    used = turns_of_keys([("a", "batches"), ("b", "steps")], {"batches": 0.5, "steps": 0.005}, 100.0)
    assert used["steps"] == pytest.approx(50.0, abs=0.6)


def test_many_clients_of_a_key_leave_another_its_share() -> None:
    """They share a batch, and so each of its steps: what one needs does not grow with their number."""
    jobs = [*((f"client {number}", "shared") for number in range(64)), ("other", "mine")]
    used = turns_of_keys(jobs, {"shared": 0.02, "mine": 0.005}, 10.0)
    assert used["mine"] == pytest.approx(5.0, abs=0.1)


def test_a_key_has_no_credit_for_time_in_which_nobody_used_it() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)

    def put(client: str, key: str) -> Job:
        job = Job(client, [None], [1], None, _FUTURE)
        scheduler.put(key, job, "interactive")
        return job

    def turn() -> str:
        chosen, _ = scheduler.choose()
        assert chosen is not None
        scheduler.turned(*chosen, tokens=1, begin=0.0, seconds=0.1)
        return chosen[1].key

    scheduler.remove("new", put("b", "new"), "interactive")
    put("a", "busy")
    assert [turn() for _ in range(100)] == ["busy"] * 100
    put("b", "new")
    assert [turn() for _ in range(10)].count("busy") in (4, 5, 6)


@pytest.mark.parametrize("idle", [False, True])
def test_who_comes_to_a_key_of_a_client_with_many_does_not_wait_for_the_others(idle: bool) -> None:
    """A turn counts eightfold for one of eight keys: after one of 0.3 s all others had as much before the next."""
    scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)
    jobs = {f"key {number}": Job("greedy", [None], [1], None, _FUTURE) for number in range(8)}
    for key, job in jobs.items():
        scheduler.put(key, job, "interactive")

    def turn(seconds: float) -> str:
        chosen, _ = scheduler.choose()
        assert chosen is not None
        scheduler.turned(*chosen, tokens=1, begin=0.0, seconds=seconds)
        return chosen[1].key

    first = turn(0.3)
    if idle:
        scheduler.remove(first, jobs[first], "interactive")
    scheduler.put(first, Job("other", [None], [1], None, _FUTURE), "interactive")
    waited = 0.0
    while turn(0.02) != first:
        waited += 0.02
    assert waited <= 0.5
    assert [turn(0.02) for _ in range(100)].count(first) == pytest.approx(50, abs=10)


def test_turns_are_short_beside_another_key_of_the_lane() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)
    scheduler.put("scores", Job("a", [None], [1], None, _FUTURE), "interactive")
    lane = scheduler.lanes["interactive"]
    assert scheduler.turn_seconds(lane, lane.lines["scores"], 10.0) == 0.5
    other = Job("b", [None], [1], None, _FUTURE)
    scheduler.put("sentences", other, "interactive")
    assert scheduler.turn_seconds(lane, lane.lines["scores"], 10.0) == SHORT_TURN
    chosen = lane, lane.lines["sentences"]
    scheduler.remove("sentences", other, "interactive")
    scheduler.turned(*chosen, tokens=1, begin=10.0, seconds=0.1)
    assert scheduler.turn_seconds(lane, lane.lines["scores"], 11.0) == SHORT_TURN  # the next one is expected soon
    assert scheduler.turn_seconds(lane, lane.lines["scores"], 60.0) == 0.5


def test_of_many_keys_the_latest_are_kept() -> None:
    """Clients choose options, and so keys; the line that is used most lately is not the one to forget."""
    scheduler: Scheduler[str] = Scheduler(capacity=1000, client_capacity=None, delay=0.0)
    lane = scheduler.lanes["bulk"]
    for number in range(40):
        job = Job("client", [None], [1], None, _FUTURE)
        scheduler.put(f"key {number}", job, "bulk")
        line = lane.lines[f"key {number}"]
        line.waiting.remove("client", job)  # as if it were done
        lane.count("client", -1)
        scheduler.turned(lane, line, tokens=1, begin=0.0, seconds=0.1)
    assert list(lane.lines) == [f"key {number}" for number in range(8, 40)]
