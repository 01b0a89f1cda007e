"""Which Moses a server has after it has read its recipes anew."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.moses.process import MosesFailed
from smt_bridge.recipe import Recipe
from smt_bridge.serving import moses_queue
from smt_bridge.serving.hybrid_models import HybridModels, _version
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
    os.utime(ini, ns=(0, 0))  # for a new table
    assert (third := models._moses("h", recipe(ini))) is not second
    assert models._moses("h", dataclasses.replace(recipe(ini), moses_threads=2)) is not third
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


def test_one_that_cannot_be_used_leaves_the_other_in_its_place(
    models: HybridModels, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ini = tmp_path / "moses.ini"
    ini.write_text("one")
    first = models._moses("h", recipe(ini))
    (tmp_path / "moses").write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    ini.write_text("two!")
    with pytest.raises(MosesFailed, match="no memory"):
        models._moses("h", recipe(ini))
    assert caplog.messages == []  # the error says it
    ini.write_text("one")
    assert first.ask("a", b"ab").answer.result()
    ini.write_text("three")
    alone = models._moses("h", dataclasses.replace(recipe(ini), degrade=True))
    assert alone is not first and len(caplog.messages) == 1 and "no memory" in caplog.messages[0]


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        ({"moses_program": "p", "moses_threads": 9, "moses_timeout": 1.0, "degrade": True}, False),
        *(
            ({name: value}, True)
            for name, value in (("beam", 5), ("weights", {"A": (1.0,)}), ("moses_options", ("-x",)))
        ),
    ],
)
def test_the_version_changes_with_what_translations_depend_on(change: dict[str, Any], is_another: bool) -> None:
    before = recipe(Path("moses.ini"))
    assert (_version(dataclasses.replace(before, **change)) != _version(before)) == is_another


def test_what_is_counted_is_named(models: HybridModels, tmp_path: Path) -> None:
    queue = models._moses("h", recipe(tmp_path / "moses.ini"))
    queue.counts.update(restarts=1, given_up=2, failures=3)
    models._degraded["h"].update(failed=4, given_up=5, untranslated=6, unreadable=7, without_graph=8)
    found = {metric.name: metric for metric in models.collect()}
    assert [*found] == ["moses_restarts", "moses_given_up_sentences", "moses_failures", "moses_waiting_sentences",
                        "hybrid_degraded_sentences", "hybrid_sentences_without_graph"]  # fmt: skip
    (tmp_path / "moses.ini").touch()
    models._moses("h", recipe(tmp_path / "moses.ini")).counts.update(restarts=10)
    assert [one.value for one in next(iter(models.collect())).samples] == [11]  # with earlier ones
    samples = [(one.labels.get("reason"), one.value) for metric in found.values() for one in metric.samples]
    reasons = [("failed", 4), ("given_up", 5), ("untranslated", 6), ("unreadable", 7)]
    assert samples == [(None, 1), (None, 2), (None, 3), (None, 0), *reasons, (None, 8)]


def test_after_the_end_nothing_is_started(models: HybridModels, tmp_path: Path) -> None:
    models.close()
    with pytest.raises(MosesFailed, match="stopped"):
        models._moses("h", recipe(tmp_path / "moses.ini"))
