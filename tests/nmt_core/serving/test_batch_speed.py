"""The size of a batch that is to take a given time, on devices of which the times are known."""

from __future__ import annotations

import random

import pytest

from nmt_core.serving.engine import work
from nmt_core.serving.engine.work import BatchSpeed, Entry, Item, StepWork

TURN = 0.02  # seconds


def sizes(speed: BatchSpeed, *, start: float, each: float, turns: int = 60, noise: float = 0.0) -> list[int]:
    """Of batches as large as they may be, on a device that takes ``start + each * tokens`` seconds."""
    numbers, made = random.Random(7), []
    for _ in range(turns):
        made.append(max(1, min(100_000, speed.tokens_in(TURN))))
        speed.note(made[-1], (start + each * made[-1]) * numbers.uniform(1 - noise, 1 + noise))
    return made


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("each", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("start", [0.0, 0.001, 0.015, 0.03, 0.5])
def test_a_batch_takes_the_time_it_may_or_twice_its_start(start: float, each: float, noise: float) -> None:
    made = sizes(BatchSpeed(), start=start, each=each, noise=noise)[20:]
    best = max(1, min(100_000, max(TURN - start, start) / each))
    assert 0.5 * best - 1 <= sorted(made)[len(made) // 2] <= 2 * best + 1


@pytest.mark.parametrize("start", [0.018, 0.03, 0.5])
def test_a_start_of_the_length_of_a_turn_does_not_shrink_batches_to_single_items(start: float) -> None:
    each = 1e-4
    speed = BatchSpeed()
    for tokens in (20, 10, 20, 10):  # small, as they are when few wait
        speed.note(tokens, start + each * tokens)
    reached = sizes(speed, start=start, each=each)[-1]
    assert reached / (start + each * reached) > 0.4 / each  # tokens a second, beside those of the largest batches


def test_batches_of_one_size_keep_what_is_known_of_the_start() -> None:
    speed = BatchSpeed()
    for tokens in (100, 200, 100, 200):
        speed.note(tokens, 0.03 + 1e-4 * tokens)
    for _ in range(200):
        speed.note(150, 0.045)
    assert speed.tokens_in(TURN) == pytest.approx(300, rel=0.05)


def test_one_slow_batch_does_not_make_the_next_one_many_times_as_large() -> None:
    speed = BatchSpeed()
    for _ in range(20):
        speed.note(100, 0.02)
    speed.note(101, 3.0)
    assert speed.tokens_in(TURN) <= 400


def test_times_too_short_to_be_measured_count_as_a_tenth_of_a_millisecond() -> None:
    speed = BatchSpeed()
    speed.note(10, 0.0)
    assert speed.tokens_in(TURN) == pytest.approx(2000, rel=0.01)


class Clocked:
    """A decoder whose steps take ``start`` seconds, and ``each`` for every token that it has."""

    waits = tokens = 0.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, start: float, each: float) -> None:
        self.now, self._start, self._each = 0.0, start, each
        monkeypatch.setattr(work, "working_time", lambda: self.now)

    def admit(self, requests: object) -> None: ...

    def step(self) -> list[tuple[int, object]]:
        self.now += self._start + self._each * self.tokens
        return []

    def cancel(self, keys: object) -> None: ...


def test_the_first_step_tells_how_long_steps_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tenth of it would be counted, and too much be let in for a while."""
    decoder = Clocked(monkeypatch, start=0.1, each=0.0)
    steps = StepWork("test", decoder, most=100)
    assert (steps.room(0.5), steps.room(0.02)) == (100, 12)  # before it, a short turn has a small batch
    decoder.tokens = 100.0
    assert steps.iterate([]) == []
    decoder.tokens = 0.0
    assert steps.room(0.05) == 50


def test_where_turns_are_short_from_the_beginning_a_fast_search_has_larger_batches_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients share it beside another class: without the time of small batches it would have no others."""
    decoder = Clocked(monkeypatch, start=0.001, each=0.00001)
    steps, made = StepWork("test", decoder, most=1600), []
    for _ in range(100):
        decoder.tokens += steps.room(0.01) // 12 * 12  # sentences of so many tokens
        made.append(decoder.tokens)
        steps.iterate([])
        decoder.tokens = max(0.0, decoder.tokens - 12)
    assert made[0] <= 100  # before anything was measured
    assert max(made) > 700


def test_many_ordinary_items_make_no_step_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count in full until they are answered: under load, some 40 of 100 steps were in slices."""
    steps = StepWork("test", Clocked(monkeypatch, start=0.0, each=0.0), most=10)
    assert steps.expected([Entry(key, None, 0, Item("a", 10)) for key in range(3)]) == 0.0
