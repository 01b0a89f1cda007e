"""From Moses-tokenised text to plain text and back, with sacremoses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


def detokenizer(language: str) -> Callable[[str], str]:
    """Return a function that joins the words of a line as ``language`` is written and undoes Moses' escapes."""
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)

    @lru_cache(maxsize=1 << 16)
    def detokenize(line: str) -> str:
        return str(moses.detokenize(line.split(" "))) if line else ""

    return detokenize


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that puts spaces between the words of plain text and escapes them as Moses does."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        return str(moses.tokenize(line, return_str=True, escape=True)) if line else ""

    return tokenize
