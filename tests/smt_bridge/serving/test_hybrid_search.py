"""A hybrid's search whose step is given up."""

from __future__ import annotations

import collections
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from nmt_core.base.pauses import yield_point
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.jobs import Entry
from nmt_core.serving.engine.slices import Sliced
from nmt_core.serving.engine.work import StepWork
from nmt_core.serving.models.search import SearchItem
from smt_bridge.serving.hybrid_search import HybridSearch, Parts


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

    def ask(self, caller: str, text: bytes) -> object:
        return SimpleNamespace(done=True, lines=None, error=None, graph=None, text=text)

    def forget(self, ticket: Any) -> None:
        self.forgotten.append(ticket.text)


def test_a_step_that_is_given_up_while_it_answers_lets_go_of_all_sentences() -> None:
    begun = threading.Event()

    def choose(*_: object) -> None:
        begun.set()
        while True:
            yield_point()

    moses: Any = _Moses()
    chooser: Any = SimpleNamespace(choose=choose)
    words: Any = SimpleNamespace(read=lambda text: SimpleNamespace(text=text), write=str)
    config = DecodingConfig()
    parts = Parts(_Found, config, None, words, chooser, moses, True, collections.Counter())  # type: ignore[arg-type]
    search = HybridSearch(parts)
    work = StepWork("test", search, most=1)
    items = [SearchItem(text, config) for text in ("a", "b", "c")]
    entries = [Entry(None, place, item, 2) for place, item in enumerate(items)]  # more than a full batch each
    work.admit(entries)
    step = Sliced(work.iterate)
    while not begun.is_set():
        assert not step.advance(0.01)
    step.give_up(wait=True)
    work.cancel(entries)
    assert (work.tokens, search.tokens) == (0, 0)
    assert moses.forgotten == [b"b", b"c"]
