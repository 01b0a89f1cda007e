"""From Moses-tokenised text to plain text and back, with sacremoses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from nmt_core.errors import NmtError


def detokenizer(language: str) -> Callable[[str], str]:
    """Return a function that joins the words of a line as ``language`` is written and undoes Moses' escapes.

    Raises NmtError when sacremoses is not installed.
    """
    try:
        from sacremoses import MosesDetokenizer
    except ImportError as error:
        raise NmtError("--detokenize needs sacremoses: pip install sacremoses") from error
    moses = MosesDetokenizer(lang=language)

    @lru_cache(maxsize=1 << 16)
    def detokenize(line: str) -> str:
        return str(moses.detokenize(line.split(" "))) if line else ""

    return detokenize


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that puts spaces between the words of plain text and escapes them as Moses does.

    Raises NmtError when sacremoses is not installed.
    """
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise NmtError("words of plain text need sacremoses: pip install sacremoses") from error
    moses = MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        return str(moses.tokenize(line, return_str=True, escape=True)) if line else ""

    return tokenize
