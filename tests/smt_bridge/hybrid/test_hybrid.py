"""Moses in a thread beside the neural search."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError, InputError
from smt_bridge.commands import translate
from smt_bridge.errors import WiringError
from smt_bridge.hybrid.chooser import Chooser
from smt_bridge.hybrid.options import SearchKeys, recipe_by_options
from smt_bridge.hybrid.translator import GuidedChooser, HybridTranslator
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.recipe import FORMAT, VERSION, GraphSearch, GuidanceOptions, Recipe, parse_recipe, write_recipe


class NoLists:
    def nbest(self, sentences: Sequence[str]) -> list[list[Any]]:
        return [[] for _ in sentences]


def test_an_error_of_the_thread_that_asks_moses_is_raised_where_it_is_waited_for() -> None:
    def no_memory(sentences: Sequence[bytes]) -> None:
        raise MemoryError("none left")

    moses: Any = SimpleNamespace(translate=no_memory, stop=lambda: None)
    chooser: Any = None
    with pytest.raises(MemoryError, match="none left"):
        HybridTranslator(moses, NoLists(), chooser).translate(["ab cd"])


class Moses:
    def translate(self, sentences: Sequence[bytes]) -> list[None]:
        self.asked = sentences
        return [None for _ in sentences]


class Neural:
    def nbest(self, texts: Sequence[str], guidance: object = None) -> list[list[NbestEntry]]:
        self.asked = texts
        return [[] for _ in texts]


def test_moses_gets_them_as_they_are_and_the_model_gets_replacements() -> None:
    moses, neural = Moses(), Neural()
    HybridTranslator(moses, neural, GuidedChooser()).translate(["caf\udce9 noir", "th\u00e9"])  # type: ignore[arg-type]
    assert moses.asked == [b"caf\xe9 noir", "th\u00e9".encode()]
    assert neural.asked == ["caf\ufffd noir", "th\u00e9"]


@pytest.mark.parametrize("version", [{}, {"version": None}, {"version": VERSION - 1}, {"version": str(VERSION)}])
def test_a_recipe_of_another_version_or_none_is_named(version: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"is a recipe of version .*; this program reads {VERSION}"):
        parse_recipe({"format": FORMAT, **version}, "recipe")


BY_DEFAULT = Recipe("i", 100, 100, "m", 12, 12, True, (), ())
MADE = ("--moses-ini", "i", "--model", "m", "--nbest-output", "l")


def by_options(*words: str) -> Recipe:
    parser = argparse.ArgumentParser()
    translate.add_arguments(parser)
    return recipe_by_options(parser.parse_args(words))


def test_lists_are_made_as_options_say_and_else_by_their_defaults(tmp_path: Path) -> None:
    assert by_options(*MADE) == BY_DEFAULT
    lists = ("--lists", "moses:5,nmt:20,graph:30", "--beam", "7", "--search", "allow_unknown", "graph_gap=2")
    made = by_options(*MADE, *lists)
    assert (made.moses_nbest, made.beam, made.nmt_nbest, made.forbid_unknown) == (5, 20, 20, False)
    assert made.graph == GraphSearch(nbest=30, beam=30, gap=2.0)
    assert by_options(*MADE, "--lists", "moses:999999,nmt:9999").moses_nbest == 999_999
    for sizes in ("0,nmt:1", "1000000,nmt:1", "1,nmt:0", "1,nmt:10000", "1,nmt:1,graph:0"):
        with pytest.raises(ConfigError, match=rf"^--lists must be like .*, not 'moses:{sizes}'$"):
            by_options(*MADE, "--lists", f"moses:{sizes}")
    assert by_options(*MADE, "--lists", "moses:1,nmt:1,graph:2").graph == GraphSearch(nbest=2, beam=12, gap=1.0)
    running = ("--moses", "p", "--moses-threads", "3", "--moses-timeout", "9", "--moses-options=-tt -x", "--degrade")
    more = ("--exact", "WordPenalty0", "--feature", "wordcount", "--preparation", "q")
    changed = replace(BY_DEFAULT, moses_program="p", moses_threads=3, moses_timeout=9.0, moses_options=("-tt", "-x"))
    changed = replace(changed, degrade=True, exact=("WordPenalty0",), features=("wordcount",), preparation="q")
    assert by_options(*MADE, *running, *more) == changed
    guided = by_options(*MADE[:4], "--search", "guidance_weight=1")
    assert guided.guidance == GuidanceOptions(1.0, (1.0, 0.6, 0.1, 0.5), 5.0)
    write_recipe(str(tmp_path / "r"), guided)
    given = by_options("--recipe", str(tmp_path / "r"), "--moses-ini", "other", "--preparation", "p")
    assert (given.moses_ini, given.preparation, given.guidance) == ("other", "p", guided.guidance)
    assert by_options("--recipe", str(tmp_path / "r")) == guided


@pytest.mark.parametrize("key", ["graph_gap", "guidance_weight", "guidance_scale", "graph_beam"])
def test_keys_of_the_search_have_limits(key: str) -> None:
    limits = ((1, 0),) if key == "graph_beam" else ((0.0, -0.1), (1000.0, 1000.1))
    for limit, beyond in limits:
        assert getattr(SearchKeys.from_mapping({key: limit}, origin="--search"), key) == limit
        with pytest.raises(ConfigError, match=f"^--search: '{key}': Input should be .* or equal to {limit:g} "):
            SearchKeys.from_mapping({key: beyond}, origin="--search")


def test_a_system_without_a_list_at_first_is_named() -> None:
    lists = {"moses": NbestList(0, [NbestEntry(0, b"a", {"X": (1.0,)}, 0.0, 1)])}
    with pytest.raises(WiringError) as caught:
        Chooser(BY_DEFAULT, []).choose(["a", "b"], [lists, {}], [{}, {}])
    said = "no list of nmt in the first 2 sentences, so its columns are not known"
    assert str(caught.value) == f"{said}; give text that it can translate, or a recipe"
    with pytest.raises(WiringError, match=r"^no list of nmt and graph in the first 1 sentence, so its"):
        Chooser(replace(BY_DEFAULT, graph=GraphSearch(nbest=2, beam=12, gap=1.0)), []).choose(["a"], [lists], [{}])
