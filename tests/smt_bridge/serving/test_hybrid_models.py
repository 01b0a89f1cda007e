"""Which Moses a server has after it has read its recipes anew."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from smt_bridge.moses.process import MosesFailed
from smt_bridge.recipe import Recipe
from smt_bridge.serving import moses_queue
from smt_bridge.serving.hybrid_models import HybridModels
from tests.smt_bridge.hybrid.small_hybrid import fake_moses


def recipe(ini: Path) -> Recipe:
    made = Recipe(str(ini), 2, 100, "model", 4, 3, True, "last", (), ())
    return dataclasses.replace(made, moses_program=str(ini.parent / "moses"), moses_timeout=20.0)


@pytest.fixture
def models(tmp_path: Path) -> Iterator[HybridModels]:
    assert fake_moses(tmp_path) == str(tmp_path / "moses")
    models = HybridModels({"h": "recipe.json"})
    yield models
    models.close()


def test_moses_is_started_anew_only_where_its_ini_has_changed(models: HybridModels, tmp_path: Path) -> None:
    ini = tmp_path / "moses.ini"
    ini.write_text("one")
    first = models._moses("h", recipe(ini))
    assert models._moses("h", recipe(ini)) is first
    ini.write_text("two!")
    second = models._moses("h", recipe(ini))
    assert second is not first and models._moses("h", recipe(ini)) is second
    for queue in (first, second):  # what has begun with the old one is finished with it
        assert queue.ask("a", b"ab").answer.result()


def test_of_earlier_ones_no_thread_stays(models: HybridModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moses_queue, "_LINGER", 0.05)
    ini = tmp_path / "moses.ini"
    for number in range(4):
        ini.write_text("x" * number)
        models._moses("h", recipe(ini))
    for _ in range(1000):
        if sum(thread.name == "moses" for thread in threading.enumerate()) == 1:  # that of the last one
            return
        time.sleep(0.01)
    raise AssertionError([thread.name for thread in threading.enumerate()])


def test_one_that_cannot_be_used_leaves_the_other_in_its_place(models: HybridModels, tmp_path: Path) -> None:
    ini = tmp_path / "moses.ini"
    ini.write_text("one")
    first = models._moses("h", recipe(ini))
    (tmp_path / "moses").write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    ini.write_text("two!")
    with pytest.raises(MosesFailed, match="no memory"):
        models._moses("h", recipe(ini))
    ini.write_text("one")
    assert first.ask("a", b"ab").answer.result()


def test_after_the_end_nothing_is_started(models: HybridModels, tmp_path: Path) -> None:
    models.close()
    with pytest.raises(MosesFailed, match="stopped"):
        models._moses("h", recipe(tmp_path / "moses.ini"))
