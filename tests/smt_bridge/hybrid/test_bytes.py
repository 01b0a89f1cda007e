"""Bytes that are not UTF-8 on their way to both systems."""

from __future__ import annotations

from collections.abc import Sequence

from smt_bridge.hybrid.translator import GuidedChooser, HybridTranslator
from smt_bridge.nbest.entry import NbestEntry


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
