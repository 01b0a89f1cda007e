"""A hybrid's search, and the second jobs that complete what it has found."""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.pauses import yield_point
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import LARGE, Entry, Item, StepWork, Unfinished
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Key, ServedModel
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.hybrid.chooser import Choice
from smt_bridge.serving.hybrid_search import HybridFinish, HybridSearch, Parts


class _Found:
    """A neural search that has found everything at once."""

    waits = tokens = 0.0

    def __init__(self) -> None:
        self.keys: list[int] = []

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        self.keys += [key for key, _ in requests]

    def step(self) -> list[tuple[int, Any]]:
        found, self.keys = [(key, []) for key in self.keys], []
        return found

    def cancel(self, keys: Sequence[int]) -> None:
        self.keys = [key for key in self.keys if key not in keys]


class _Moses:
    """Has answered, and notes what is forgotten."""

    def __init__(self) -> None:
        self.forgotten: list[object] = []
        self.done = True

    def ask(self, caller: str, text: bytes) -> object:
        answer = SimpleNamespace(done=lambda: self.done, exception=lambda: None, result=lambda: None)
        return SimpleNamespace(answer=answer, text=text)

    def forget(self, ticket: Any) -> None:
        self.forgotten.append(ticket.text)


def hybrid(choose: Any = None) -> tuple[Parts, _Moses]:
    moses: Any = _Moses()
    chooser: Any = SimpleNamespace(choose=choose)
    words: Any = SimpleNamespace(read=lambda text: SimpleNamespace(text=text), write=str)
    parts = Parts(_Found, DecodingConfig(), None, words, chooser, moses, True, collections.Counter())  # type: ignore[arg-type]
    return parts, moses


def test_sentences_that_are_cancelled_are_forgotten_by_both_systems() -> None:
    parts, moses = hybrid()
    search = HybridSearch(parts)
    work = StepWork("test", search, most=100)
    entries = [
        Entry(number, None, number, Item(SearchItem(text, parts.config), 2))
        for number, text in enumerate(["a", "b", "c"])
    ]
    moses.done = False
    assert work.iterate(entries) == []
    assert (search.waits, search.tokens) == (0.003, 12 * 3 * 2)  # a word and the end of each, for a beam of 12
    search._live[0].neural = None  # it is searched for: the others wait for Moses
    search._search.waits = 0.5  # type: ignore[misc]
    assert (search.waits, search.tokens) == (0.5, 12 * 2 * 2)
    search._live[0].neural = []
    work.cancel([1, 2])
    assert moses.forgotten == [b"b", b"c"]
    moses.done = True
    assert search.waits == 0.0
    ((key, value),) = work.iterate([])
    assert key == 0
    assert isinstance(value, Unfinished)
    assert search.tokens == 0


def test_what_both_systems_have_found_becomes_an_answer_in_a_second_job_that_ends_with_its_caller() -> None:
    begun, ended = threading.Event(), threading.Event()

    def choose(*_: object) -> None:
        begun.set()
        try:
            while True:
                yield_point()
        finally:
            ended.set()

    parts, _ = hybrid(choose)
    model = ServedModel(  # type: ignore[arg-type]
        None,
        decoder=lambda attention: HybridSearch(parts),
        finish=HybridFinish(parts, None),
        description=pb.Model(kind=pb.MODEL_KIND_HYBRID),
    )

    async def scenario() -> None:
        engine = Engine(lambda key: key.model.work(key))
        item = Item(SearchItem("a", parts.config), LARGE + 1)
        asked = asyncio.create_task(engine.submit(Key(model, "translate"), {"interactive": [item]}))
        assert await asyncio.to_thread(begun.wait, 30)
        asked.cancel()
        await asyncio.wait([asked])
        await engine.close()

    parts = parts._replace(config=DecodingConfig(beam=200, nbest=200))  # so many that it is done in slices
    asyncio.run(scenario())
    assert ended.is_set()


@pytest.mark.parametrize(
    ("system", "reason", "counted", "said"),
    [
        ("moses", "given_up", "given_up", []),
        (
            "moses",
            "list:1: bad",
            "unreadable",
            ["a sentence has no list of Moses; such sentences are counted: list:1: bad"],
        ),
        (
            "graph",
            "bad",
            "without_graph",
            ["a sentence has no list of its search graph; such sentences are counted: bad"],
        ),
    ],
)
def test_why_a_system_has_no_list_is_counted_and_what_nobody_expects_said_once(
    system: str, reason: str, counted: str, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    parts, _ = hybrid(lambda *_: [Choice([], None, {system: reason})])
    parts.chooser.order = lambda _: []  # type: ignore[method-assign]
    parts = parts._replace(scorer=SimpleNamespace(score=lambda *_, **__: []))  # type: ignore[arg-type]
    search = HybridSearch(parts)
    search.admit([(number, SearchItem(text, parts.config)) for number, text in enumerate(["a", "b"])])
    assert HybridFinish(parts, None)([value.value for _, value in search.step()]) == [[], []]
    assert parts.degraded == {counted: 2} and caplog.messages == said


def test_a_sentence_that_cannot_be_completed_takes_no_other_with_it() -> None:
    def choose(texts: list[str], *_: object) -> None:
        raise ValueError(texts[0])

    parts, _ = hybrid(choose)
    search = HybridSearch(parts)
    search.admit([(number, SearchItem(text, parts.config)) for number, text in enumerate(["a", "b"])])
    unfinished = [value.value for _, value in search.step()]
    assert [str(one) for one in HybridFinish(parts, None)(unfinished)] == ["a", "b"]


def test_a_search_that_is_guided_begins_with_moses_answer() -> None:
    parts, moses = hybrid()
    search = HybridSearch(parts._replace(guide=lambda lines: None))
    moses.done = False
    search.admit([(0, SearchItem("a", parts.config))])
    assert search.step() == [] and (search._live[0].entered, search.waits) == (False, 0.003)
    moses.done = True
    assert search.waits == 0.0 and [key for key, _ in search.step()] == [0]
