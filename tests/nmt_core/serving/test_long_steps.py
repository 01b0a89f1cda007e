"""A step with an item that is more than a full batch is done in slices, with the work of others in between."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.pauses import held_up_by, yield_point
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.serving.engine import work as engine_work
from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.jobs import Entry
from nmt_core.serving.engine.slices import Sliced
from nmt_core.serving.engine.work import BatchWork, StepWork
from nmt_core.serving.models.search import RunningSearch, SearchItem
from tests.nmt_core.serving.test_engine import held, submit, until
from tests.nmt_core.serving.test_slices import runs_until

FULL = 10


class Steps:
    """A decoder whose items are done after a step, which pauses until ``goes_on`` is set."""

    waits = tokens = 0.0

    def __init__(self) -> None:
        self.items: dict[int, Any] = {}
        self.begun, self.goes_on, self.ended = threading.Event(), threading.Event(), threading.Event()

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        self.items.update(requests)
        yield_point()

    def step(self) -> list[tuple[int, Any]]:
        self.begun.set()
        try:
            runs_until(self.goes_on.is_set)
        finally:
            self.ended.set()
        found, self.items = list(self.items.items()), {}
        return found

    def cancel(self, keys: Sequence[int]) -> None:
        for key in keys:
            del self.items[key]


def opened(decoder: Steps, key: object) -> StepWork | BatchWork:
    return StepWork("test", decoder, most=FULL) if key == "wide" else BatchWork("test", list)


async def test_others_have_their_turns_within_a_step_of_a_wide_search() -> None:
    decoder = Steps()
    engine = Engine(lambda key: opened(decoder, key))
    wide = asyncio.create_task(submit(engine, "wide", ["a"], tokens=[FULL + 1], priority="long", client="a"))
    await until(decoder.begun.is_set)
    for _ in range(3):
        assert await submit(engine, "small", ["b"], tokens=[1], client="b") == ["b"]
    assert not decoder.ended.is_set()
    decoder.goes_on.set()
    found = await wide
    await engine.close()
    assert found == ["a"]


async def test_a_step_that_nobody_waits_for_any_more_ends_where_it_is() -> None:
    decoder = Steps()
    engine = Engine(lambda key: opened(decoder, key))
    wide = asyncio.create_task(submit(engine, "wide", ["a"], tokens=[FULL + 1]))
    await until(decoder.begun.is_set)
    wide.cancel()
    await until(lambda: engine.running_items == 0)
    assert decoder.ended.is_set()
    assert decoder.items == {}
    decoder.goes_on.set()
    found = await submit(engine, "wide", ["b"], tokens=[FULL + 1])
    await engine.close()
    assert found == ["b"]


def test_many_ordinary_items_make_no_step_a_long_one() -> None:
    """They count in full until they are answered: under load, some 40 of 100 steps were in slices, and not measured."""
    work = StepWork("test", Steps(), most=FULL)
    assert work.expected([Entry(key, None, 0, "a", FULL) for key in range(3)]) == 0.0


async def test_a_caller_that_leaves_within_a_step_leaves_the_search_after_it() -> None:
    """Nobody enters or leaves a search within its step."""

    class SomeStay(Steps):
        def step(self) -> list[tuple[int, Any]]:
            runs_until(self.goes_on.is_set)
            return [] if "leaves" in self.items.values() else super().step()

    decoder = SomeStay()
    engine = Engine(lambda key: opened(decoder, key))
    async with held(engine, FULL + 2):
        stays = asyncio.create_task(submit(engine, "wide", ["stays"], tokens=[1], client="a"))
        leaves = asyncio.create_task(submit(engine, "wide", ["leaves"], tokens=[FULL + 1], client="b"))
    await until(lambda: len(decoder.items) == 2)
    late = asyncio.create_task(submit(engine, "wide", ["late"], tokens=[1], client="a"))
    leaves.cancel()
    await asyncio.wait([leaves])
    assert sorted(decoder.items.values()) == ["leaves", "stays"]
    decoder.goes_on.set()
    found = [*await stays, *await late]
    await engine.close()
    assert found == ["stays", "late"]


async def test_what_fails_in_a_slice_of_a_step_fails_alone() -> None:
    class Breaking(Steps):
        def step(self) -> list[tuple[int, Any]]:
            yield_point()
            if "bad" in self.items.values():
                raise ValueError("broken")
            return super().step()

    def begin() -> Steps:
        decoder = Breaking()
        decoder.goes_on.set()
        return decoder

    engine = Engine(lambda key: opened(begin(), key))
    found = await submit(engine, "wide", ["good", "bad"], tokens=[FULL + 1] * 2)
    await engine.close()
    good, bad = found
    assert good == "good"
    assert isinstance(bad, ValueError)


def test_reading_a_long_text_and_a_step_with_a_wide_beam_pause(folder: str) -> None:
    pauses: list[None] = []
    search = RunningSearch([load_model(folder)], attention=False)
    words, beam = 300, 100
    with held_up_by(lambda: pauses.append(None)):
        search.admit([(0, SearchItem(" ".join(["un"] * words), DecodingConfig(beam=beam)))])
        assert len(pauses) > 2 * words  # in both directions
        for _ in range(5):  # until the beam is full
            pauses.clear()
            search.step()
    assert len(pauses) >= 2  # rows are attended from some at a time


def test_a_search_in_slices_finds_the_same(folder: str) -> None:
    items = [SearchItem(" ".join(["un", "deux"] * 40), DecodingConfig(beam=beam)) for beam in (9, 3)]

    def searched(seconds: float) -> list[Any]:
        work = StepWork("test", RunningSearch([load_model(folder)], attention=False), most=10_000)
        entries = [Entry(place, None, place, item, 81 * item.config.beam) for place, item in enumerate(items)]
        found: dict[int, Any] = {}
        while len(found) < len(items):
            step = Sliced(functools.partial(work.iterate, entries))
            while not step.advance(seconds):
                pass
            found.update(step.result())
            entries = []
        return [[(one.text, one.score) for one in found[place]] for place in range(len(items))]

    assert searched(0.0) == searched(60.0)


def test_the_first_step_tells_how_long_steps_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tenth of it would be counted, and too much be let in for a while."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(engine_work, "working_time", lambda: clock.now)

    class Timed(Steps):
        def step(self) -> list[tuple[int, Any]]:
            clock.now += 0.1
            self.tokens = 0.0
            return []

    decoder = Timed()
    work = StepWork("test", decoder, most=100)
    assert (work.room(0.5), work.room(0.02)) == (100, 12)  # before it, a short turn has a small batch
    decoder.tokens = 100.0
    assert work.iterate([Entry(0, None, 0, "a", 100)]) == []
    assert work.room(0.05) == 50


def test_where_turns_are_short_from_the_beginning_a_fast_search_has_larger_batches_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients share it beside another lane: without the time of small batches it would have no others."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(engine_work, "working_time", lambda: clock.now)

    class Fast(Steps):
        def step(self) -> list[tuple[int, Any]]:
            clock.now += 0.001 + 0.00001 * self.tokens
            return []

    decoder = Fast()
    decoder.tokens = 0.0
    work = StepWork("test", decoder, most=1600)
    batches = []
    for _ in range(100):
        decoder.tokens += work.room(0.01) // 12 * 12  # sentences of so many tokens
        batches.append(decoder.tokens)
        work.iterate([])
        decoder.tokens = max(0.0, decoder.tokens - 12)
    assert batches[0] <= 100  # before anything was measured
    assert max(batches) > 700
