"""Moses in a thread beside the neural search."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from smt_bridge.hybrid.translator import HybridTranslator


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
