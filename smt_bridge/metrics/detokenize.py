"""From Moses-tokenised text to plain text, with sacremoses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from sacremoses import MosesDetokenizer


def detokenizer(language: str) -> Callable[[str], str]:
    """Return a function that joins the words of a line as ``language`` is written and undoes Moses' escapes."""
    moses = MosesDetokenizer(lang=language)

    @lru_cache(maxsize=1 << 16)
    def detokenize(line: str) -> str:
        return str(moses.detokenize(line.split(" "))) if line else ""

    return detokenize
