"""Moses' scripts in linear time: the library's own results."""

from __future__ import annotations

import random
import time

import pytest
import sacremoses

from nmt_core.text.moses_scripts import PunctuationNormalizer, open_tokenizer

_PIECES = [
    *[".", "..", '"', "'", "<", "a", "B", "Mr.", "U.S.", "z.B.", "3.", ",", "„", "%", "é.", "("],
    " ",
    "\u00a0",
    "\n",
]


def _texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices(_PIECES, k=draw.randrange(1, 16))) for _ in range(3000)]


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "xx"])
def test_punctuation_is_that_of_the_library(language: str) -> None:
    theirs, ours = sacremoses.MosesPunctNormalizer(lang=language, perl_parity=True), PunctuationNormalizer(language)
    for text in _texts(1):
        assert ours.normalize(text) == theirs.normalize(text), text


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_words_are_those_of_the_library(language: str) -> None:
    theirs, ours = sacremoses.MosesTokenizer(lang=language), open_tokenizer(language)
    for text in _texts(2)[:400]:
        assert ours.tokenize(text, return_str=True) == theirs.tokenize(text, return_str=True), text


@pytest.mark.parametrize("text", ["." * 200_000, '."' * 100_000, "U.S. " * 40_000, "Mr. a " * 30_000, '. "' * 60_000])
def test_time_is_linear(text: str) -> None:
    """Some of these took half a minute."""
    begun = time.process_time()
    open_tokenizer("fr").tokenize(PunctuationNormalizer("fr").normalize(text), return_str=True)
    assert time.process_time() - begun < 5
