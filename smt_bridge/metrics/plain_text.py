"""Plain text of Moses-tokenised hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from nmt_core.base.languages import check_language


def detokenizer(language: str) -> Callable[[str], str]:
    """Return a function that joins the words of a line as ``language`` is written and undoes Moses' escapes.

    Raises ConfigError for what is no code of a language.
    """
    from sacremoses import MosesDetokenizer  # takes half a second, which tokenised text does without

    check_language(language, f"--detokenize {language}")
    moses = MosesDetokenizer(lang=language)

    @lru_cache(maxsize=1 << 16)
    def detokenize(line: str) -> str:
        return str(moses.detokenize(line.split(" "))) if line else ""

    return detokenize
