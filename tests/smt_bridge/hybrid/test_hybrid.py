"""Moses in a thread beside the neural search."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from smt_bridge.errors import FormatError
from smt_bridge.hybrid.translator import HybridTranslator
from smt_bridge.moses.process import MosesLines


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


def test_an_error_in_a_list_names_no_sentence_of_another_line() -> None:
    """Of a later window the number of the sentence is not known here."""
    moses: Any = SimpleNamespace(translate=lambda _: [MosesLines(), MosesLines([b"ba ||| LM0= nan ||| -1"])])
    chooser: Any = None
    with pytest.raises(FormatError, match=r"^the moses list of a sentence:1: "):
        HybridTranslator(moses, NoLists(), chooser).translate(["ab", "cd"])
