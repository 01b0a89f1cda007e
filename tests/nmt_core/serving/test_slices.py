"""What takes long, batches and steps of searches, is done in slices, with the work of others in between."""

from __future__ import annotations

import asyncio
import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.base.pauses import held_up_by, yield_point
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.layers.normalizer import BlockNormalizer
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.serving.engine.queue import Job
from nmt_core.serving.engine.slices import Sliced, off_loop
from nmt_core.serving.engine.work import LARGE, BatchSpeed, BatchWork, Entry, Item, StepWork
from nmt_core.serving.errors import RpcError, invalid
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import Cost, Plan, Words, _bounded, make_plan
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.serving.models.served import Key, Proportions, ServedModel
from nmt_core.serving.telemetry import Metrics
from nmt_core.v1 import nmt_pb2 as pb
from tests.model_files import open_pair_scorer
from tests.nmt_core.serving.support import until
from tests.nmt_core.serving.test_engine import asked, held, submit, unthreaded
from tests.searching import open_translator

FULL = 10


def runs_until(condition: Callable[[], bool]) -> None:
    """A computation that pauses, until the condition holds; gives up after a minute."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        yield_point()


class Paused:
    """Items that take until ``goes_on`` is set, as a batch or as the step of a search; ``bad`` ones break it."""

    waits = tokens = 0.0

    def __init__(self, kind: str = "step") -> None:
        self.kind, self.items = kind, dict[int, Any]()
        self.begun, self.goes_on, self.ended = threading.Event(), threading.Event(), threading.Event()

    def open(self, key: object) -> BatchWork | StepWork:
        """The work of a key: all but "slow" ones are done at once."""
        if key != "slow":
            return BatchWork("test", list)
        return BatchWork("test", self.run) if self.kind == "batch" else StepWork("test", self, most=FULL)

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        self.begun.set()
        try:
            runs_until(self.goes_on.is_set)
        finally:
            self.ended.set()
        if "bad" in items:
            raise ValueError("broken")
        return items

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        self.items.update(requests)
        yield_point()

    def step(self) -> list[tuple[int, Any]]:
        values = self.run(list(self.items.values()))
        found = list(zip(self.items, values, strict=True))
        self.items.clear()
        return found

    def cancel(self, keys: Sequence[int]) -> None:
        for key in keys:
            self.items.pop(key, None)


def iterations_of(metrics: Metrics) -> float:
    """Those, and slices of them, that were done so far."""
    return metrics.registry.get_sample_value("nmt_turn_seconds_count", {"device": "cpu", "kind": "test"}) or 0


KINDS = pytest.mark.parametrize("kind", ["batch", "step"])


@KINDS
async def test_others_have_their_turns_while_a_large_item_is_done(open_engine, kind: str) -> None:
    paused = Paused(kind)
    engine = open_engine(paused.open)
    large = asked(engine, "slow", ["a"], tokens=[LARGE + 1], priority="long", client="a")
    await until(paused.begun.is_set)
    for _ in range(3):
        assert await submit(engine, "fast", ["b"], client="b") == ["b"]
    assert not paused.ended.is_set()
    paused.goes_on.set()
    assert await large == ["a"]


@KINDS
async def test_what_nobody_waits_for_any_more_ends_where_it_is(open_engine, kind: str) -> None:
    paused = Paused(kind)
    engine = open_engine(paused.open)
    large = asked(engine, "slow", ["large"], tokens=[LARGE + 1])
    await until(paused.begun.is_set)
    large.cancel()
    await until(lambda: engine.running_items == 0)
    assert paused.ended.is_set()
    assert not paused.items
    paused.goes_on.set()
    assert await submit(engine, "slow", ["other"], tokens=[LARGE + 1]) == ["other"]


@KINDS
async def test_what_fails_in_a_slice_takes_no_other_with_it(open_engine, kind: str) -> None:
    def open_work(key: object) -> BatchWork | StepWork:
        paused = Paused(kind)
        paused.goes_on.set()
        return paused.open(key)

    engine = open_engine(open_work)
    good, bad = await submit(engine, "slow", ["good", "bad"], tokens=[LARGE + 1] * 2)
    assert good == "good"
    assert isinstance(bad, ValueError)


async def test_a_caller_that_leaves_within_a_step_leaves_the_search_after_it(open_engine) -> None:
    """Nobody enters or leaves a search within its step."""

    class SomeStay(Paused):
        def step(self) -> list[tuple[int, Any]]:
            runs_until(self.goes_on.is_set)
            return [] if "leaves" in self.items.values() else super().step()

    decoder, metrics = SomeStay(), Metrics()
    engine = open_engine(decoder.open, metrics=metrics)
    async with held(engine, FULL + 2):
        stays = asked(engine, "slow", ["stays"], client="a")
        leaves = asked(engine, "slow", ["leaves"], tokens=[FULL + 1], client="b")
    await until(lambda: len(decoder.items) == 2)
    late = asked(engine, "slow", ["late"], client="a")
    leaves.cancel()
    await asyncio.wait([leaves])
    before = iterations_of(metrics)
    await until(lambda: iterations_of(metrics) > before + 1)
    assert sorted(decoder.items.values()) == ["leaves", "stays"]
    decoder.goes_on.set()
    assert [*await stays, *await late] == ["stays", "late"]


def test_a_batch_is_done_in_slices_where_even_the_smallest_takes_many_iterations() -> None:
    """Little is known of the first batch."""
    seconds = 0.001

    def run(items: Sequence[str]) -> Sequence[str]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield_point()
        return items

    metrics = Metrics()

    def iterations(key: str = "x", tokens: int = 10) -> float:
        before = iterations_of(metrics)
        queue = device._queues.put(key, "interactive", Job("client", [Item("item", tokens)]))
        while not queue.idle:
            device._iterate(queue)
        return iterations_of(metrics) - before

    device = unthreaded(lambda key: BatchWork("test", run), metrics=metrics)
    device._queues.put("other", "interactive", Job("other", [Item("item", 1)]))  # next to which iterations are short
    iterations()  # of which nothing is known before: in slices
    seconds = 0.3
    assert iterations() == 1  # which was not expected
    assert iterations() >= 5
    seconds = 0.001
    assert min([iterations() for _ in range(30)][-5:]) == 1  # as it is again, when enough were short
    seconds = 0.3
    assert iterations("y", tokens=LARGE) >= 5


def planned(kind: str, items: Sequence[Item | RpcError], priority: int = 0) -> Plan:
    def reply(found: list[Any], words: Words) -> list[bytes]:
        return [repr(found).encode()]

    model: Any = ServedModel(SimpleNamespace(signature="fake"), decoder=None)  # type: ignore[arg-type]
    key = Key(model, kind)  # type: ignore[arg-type]
    return make_plan(key, items, priority=priority, cost=Cost(0, 0, 0), limits=Limits(), reply=reply)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("translate", Proportions().together // 16), ("encode", LARGE), ("score", LARGE)],
)
def test_what_takes_long_waits_in_its_own_class_for_every_kind_of_work(kind: str, most: int) -> None:
    items = [Item("short", 1), Item("longer", most + 1), Item("long", 20 * most), Item("short, too", most)]
    plan = planned(kind, items)
    assert plan.parts == {"interactive": [items[0], items[3]], "long": [items[1], items[2]]}
    assert plan.indices == [[0, 3], [1, 2]]


@pytest.mark.parametrize(
    ("size", "priority", "name"),
    [
        *(
            (size, pb.PRIORITY_UNSPECIFIED, name)
            for size, name in ((1, "interactive"), (32, "interactive"), (33, "bulk"))
        ),
        (33, pb.PRIORITY_INTERACTIVE, "interactive"),
        (1, pb.PRIORITY_BULK, "bulk"),
    ],
)
def test_requests_of_few_items_are_interactive_unless_they_say_otherwise(size: int, priority: int, name: str) -> None:
    assert [*planned("score", [Item("short", 1)] * size, priority).parts] == [name]


def test_what_nothing_can_interrupt_takes_five_seconds_at_most() -> None:
    speed = BatchSpeed()
    assert isinstance(_bounded(Item("a", 10**9), speed), Item)  # nothing is known of its speed
    speed.note(100, 1.0)
    assert isinstance(_bounded(Item("a", 500), speed), Item)
    problem = (
        "the model would work on this for about 11 s without a pause; at most 5, send a shorter text or a smaller beam"
    )
    refused = _bounded(Item("a", 1100), speed)
    assert (str(refused), getattr(refused, "reason", None)) == (problem, "TOO_COSTLY")


def test_every_item_has_its_answer_or_why_it_has_none() -> None:
    refused = invalid("texts", "too long")
    plan = planned("encode", [Item("a", LARGE + 1), refused, Item("b", 1), Item("c", 1)])
    reply = plan.finish([["B", ValueError("secret")], ["A"]])
    assert reply.content.startswith(b"['A', RpcError('too long'), 'B', RpcError(")
    assert reply.errors == {"BAD_OPTION": 1, "INTERNAL": 1}


@pytest.mark.parametrize(("size", "beside"), [(100, False), (1 << 20, True), (math.inf, True)])
def test_large_requests_are_planned_and_replied_to_off_the_event_loop(size: float, beside: bool) -> None:
    def where(number: int) -> tuple[int, bool]:
        return number, threading.current_thread() is not threading.main_thread()

    assert asyncio.run(off_loop("a", size, where, 7)) == (7, beside)
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(off_loop("a", size, int, "broken"))


async def test_large_requests_take_turns_off_the_event_loop_and_end_with_their_callers() -> None:
    small, ended = threading.Event(), threading.Event()

    def long(condition: Callable[[], bool]) -> None:
        try:
            runs_until(condition)
        finally:
            ended.set()

    first = asyncio.create_task(off_loop("a", math.inf, long, small.is_set))
    second = asyncio.create_task(off_loop("a", math.inf, small.set))
    await asyncio.gather(first, second)
    ended.clear()
    gone = asyncio.create_task(off_loop("a", math.inf, long, lambda: False))
    await asyncio.sleep(0.02)
    gone.cancel()
    assert await asyncio.to_thread(ended.wait, 30)


async def test_a_client_with_many_computations_off_the_event_loop_delays_another_by_one_slice() -> None:
    done, slices = threading.Event(), list[str]()

    def long(client: str, pieces: int) -> None:
        for _ in range(pieces):
            slices.append(client)
            end = time.monotonic() + 0.01  # longer than a slice
            while not done.is_set() and time.monotonic() < end:
                yield_point()

    many = [asyncio.create_task(off_loop("many", math.inf, long, "many", 1000)) for _ in range(30)]
    await until(lambda: len(slices) > 30)
    begun = len(slices)
    await off_loop("few", math.inf, long, "few", 3)
    done.set()
    await asyncio.gather(*many)
    found = slices[begun : begun + slices[begun:].index("few") + 10]
    assert found.index("few") <= 2
    assert found.count("few") == 3


def pauses_of(compute: Callable[[], object]) -> int:
    """How often a computation could pause."""
    pauses: list[None] = []
    with held_up_by(lambda: pauses.append(None)):
        compute()
    yield_point()  # of nothing
    return len(pauses)


def test_models_may_pause_at_every_word(folder: str) -> None:
    words = 30
    text, target = (" ".join([word] * words) for word in ("un", "one"))
    scorer, config = open_pair_scorer([folder]), SamplingConfig(min_length=words, max_length_extra=words)
    translator = open_translator([folder], config=config, batch_tokens=100)
    assert words < pauses_of(lambda: scorer.score([SentencePair(text, target)])) < 10 * words
    assert words < pauses_of(lambda: translator.translate([text])) < 10 * words
    assert pauses_of(lambda: scorer.score([SentencePair(text, "one")])) > 2 * words  # it is read in both directions


def test_normalisers_of_many_words_pause() -> None:
    normalizer = BlockNormalizer(lambda inputs: inputs, torch.zeros(5000, 4), torch.zeros(5000))
    words = torch.arange(3), torch.zeros(3, dtype=torch.long)
    assert pauses_of(lambda: normalizer.log_probs(torch.zeros(1000, 4), *words)) > 1


def test_many_samples_of_a_long_text_pause_within_a_word(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention looks at a long text some rows at a time, and words are drawn some rows at a time: the same ones."""
    config = SamplingConfig(samples=120, max_length_ratio=0.01, max_length_extra=2)
    translator = open_translator([folder], config=config, batch_tokens=100)
    drawn: list[list[tuple[str, ...]]] = []

    def draw() -> None:
        (samples,) = translator.translate([" ".join(["un"] * 300)])
        drawn.append([one.words for one in samples])

    steps, usual = config.length_limit(300) + 1, pauses_of(draw)
    assert usual > 3 * steps
    monkeypatch.setattr("nmt_core.inference.search.sampling._AT_ONCE_ON_CPU", 1)
    assert pauses_of(draw) > usual + 100 * steps // 2
    assert drawn[0] == drawn[1]


def test_reading_a_long_text_and_a_step_with_a_wide_beam_pause(folder: str) -> None:
    search, words = RunningSearch([load_model(folder)], attention=False), 300
    item = SearchItem(" ".join(["un"] * words), DecodingConfig(beam=100))
    assert pauses_of(lambda: search.admit([(0, item)])) > 2 * words  # in both directions
    assert [pauses_of(search.step) for _ in range(5)][
        -1
    ] >= 2  # rows are attended from some at a time; the beam is full


def never_ends() -> tuple[Callable[[Sequence[str]], Sequence[str]], threading.Event, threading.Event]:
    """A computation of a large item that goes on until it is given up; when it has begun, and when it has ended."""
    begun, ended = threading.Event(), threading.Event()

    def run(items: Sequence[str]) -> Sequence[str]:
        begun.set()
        try:
            runs_until(lambda: False)
        finally:
            ended.set()
        return items

    return run, begun, ended


async def test_what_is_done_in_slices_ends_when_an_engine_begins_anew(
    open_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, begun, ended = never_ends()
    engine = open_engine(lambda key: BatchWork("test", run if key == "large" else list))
    large = asked(engine, "large", ["a"], tokens=[LARGE + 1])
    await until(begun.is_set)

    def fail() -> None:
        monkeypatch.undo()
        raise SystemExit

    monkeypatch.setattr(engine._queues, "choose", fail)
    assert [type(found) for found in await large] == [RpcError]
    assert await asyncio.to_thread(ended.wait, 30)
    assert await submit(engine, "small", ["b"]) == ["b"]


def test_a_computation_that_is_given_up_before_its_first_slice_never_begins() -> None:
    run, begun, _ = never_ends()
    sliced = Sliced(lambda: run(["x"]))
    sliced.give_up()
    assert sliced._thread is None
    assert not begun.is_set()


def test_a_search_in_slices_finds_the_same(folder: str) -> None:
    items = [SearchItem(" ".join(["un", "deux"] * 40), DecodingConfig(beam=beam)) for beam in (9, 3)]

    def searched(seconds: float) -> list[Any]:
        work = StepWork("test", RunningSearch([load_model(folder)], attention=False), most=10_000)
        entries = [Entry(place, None, place, Item(item, 81 * item.config.beam)) for place, item in enumerate(items)]
        found: dict[int, Any] = {}
        while len(found) < len(items):
            step = Sliced(functools.partial(work.iterate, entries))
            while not step.advance(seconds):
                pass
            found.update(step.result())
            entries = []
        return [[(one.text, one.score) for one in found[place]] for place in range(len(items))]

    assert searched(0.0) == searched(60.0)
