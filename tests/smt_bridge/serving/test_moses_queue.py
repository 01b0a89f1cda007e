"""Sentences of many callers for one Moses: turns, forgotten ones, failures and what comes after them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smt_bridge.moses import process as moses_process
from smt_bridge.moses.process import MosesOptions, MosesProcess
from smt_bridge.serving import moses_queue
from smt_bridge.serving.moses_queue import MosesQueue
from tests.smt_bridge.hybrid.small_hybrid import fake_moses


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MosesQueue]:
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    queue = MosesQueue(MosesOptions(program=fake_moses(tmp_path), timeout=20.0))
    yield queue
    queue.close()


def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within 10 s")


def test_every_caller_has_the_list_of_his_own_sentence(queue: MosesQueue) -> None:
    asked = {word: queue.ask(word[0], word.encode()) for word in ("ab", "cd", "ad", "ef")}
    for word, ticket in asked.items():
        lines = ticket.answer.result()
        assert lines is not None and lines[0].startswith(word[::-1].encode() + b"  |||")


def test_a_caller_with_few_sentences_does_not_wait_for_one_with_many(
    queue: MosesQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    translate = MosesProcess.translate
    monkeypatch.setattr(MosesProcess, "translate", lambda self, lines: asked.extend(lines) or translate(self, lines))
    queue.ask("", b"first").answer.result()  # it has loaded
    many = [queue.ask("many", b"SPLIT %d" % number) for number in range(20)]
    few = [queue.ask("few", b"few"), queue.ask("few", b"few")]
    for ticket in (*many, *few):
        ticket.answer.result()
    assert asked.index(b"few") <= 4 and asked[::-1].index(b"few") >= 12


def test_what_nobody_waits_for_is_not_translated(queue: MosesQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    translate = MosesProcess.translate
    monkeypatch.setattr(MosesProcess, "translate", lambda self, lines: asked.extend(lines) or translate(self, lines))
    queue.ask("", b"first").answer.result()
    tickets = [queue.ask("a", b"SPLIT %d" % number) for number in range(10)]
    queue.forget(tickets[8])
    tickets[9].answer.result()
    assert b"SPLIT 8" not in asked and b"SPLIT 9" in asked and not tickets[8].answer.done()
    queue.forget(tickets[9])  # has its answer already


def test_one_that_cannot_be_used_fails_at_once_and_is_tried_again_later(
    queue: MosesQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (tmp_path / "moses").read_text()
    (tmp_path / "moses").write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    first = queue.ask("a", b"ab cd").answer.exception()
    assert "no memory" in str(first)
    (tmp_path / "moses").write_text(program)
    again = queue.ask("a", b"ab cd")
    assert again.answer.done() and again.answer.exception() is first and queue.counts["failures"] == 1
    monkeypatch.setattr(queue, "_rests_until", 0.0)
    assert queue.ask("a", b"ab cd").answer.result()


def test_restarts_are_counted_over_failures(queue: MosesQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    assert queue.ask("a", b"ab").answer.result()
    assert queue.ask("a", b"DIE").answer.result() is None
    assert queue.counts == {"restarts": 2, "given_up": 1}


def test_one_in_whose_place_is_another_ends_when_nobody_asks_and_comes_back_for_who_does(
    queue: MosesQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moses_queue, "_LINGER", 0.05)
    assert queue.ask("a", b"ab").answer.result()
    queue.retire()
    for _ in range(2):
        until(lambda: queue._thread is None)
        assert queue._process is None and queue.ask("a", b"ab").answer.result()


def test_the_end_does_not_wait_for_a_sentence(queue: MosesQueue) -> None:
    assert queue.ask("a", b"ab").answer.result()
    hangs = queue.ask("a", b"HANG")
    begin = time.monotonic()
    queue.close()
    assert time.monotonic() - begin < 15
    assert {str(one.answer.exception()) for one in (hangs, queue.ask("a", b"ab"))} == {
        f"{queue.options.program} was stopped"
    }


def test_one_that_is_asked_for_nothing_has_no_thread(tmp_path: Path) -> None:
    queue = MosesQueue(MosesOptions(program=fake_moses(tmp_path), timeout=20.0))
    assert queue._thread is None
    queue.close()
    assert "stopped" in str(queue.ask("a", b"ab").answer.exception())


def test_where_the_system_has_no_thread_it_is_tried_again(queue: MosesQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            queue.ask("a", b"ab")
    assert queue.waiting == 0
    assert queue.ask("a", b"ab").answer.result()


def test_an_error_that_nobody_foresaw_is_told_to_who_waits(queue: MosesQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(process: MosesProcess, lines: object) -> None:
        raise MemoryError("none left")

    translate = MosesProcess.translate
    monkeypatch.setattr(MosesProcess, "translate", no_memory)
    said = f"{queue.options.program} could not be asked: MemoryError('none left')"
    assert str(queue.ask("a", b"ab cd").answer.exception()) == said
    monkeypatch.setattr(MosesProcess, "translate", translate)
    monkeypatch.setattr(queue, "_rests_until", 0.0)
    assert queue.ask("a", b"ab cd").answer.result()
