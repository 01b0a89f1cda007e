"""Moses in a thread beside the neural search."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.errors import InputError
from smt_bridge.hybrid.translator import GuidedChooser, HybridTranslator
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.recipe import FORMAT, VERSION, parse_recipe


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
