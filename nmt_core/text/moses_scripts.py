r"""Moses' scripts for punctuation and words, as *sacremoses* has them, in linear time.

The library looks for the place behind a run of full stops from every one of them, and makes a set of all letters for
every word that ends in a full stop; both are done otherwise here, with the same result.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from nmt_core.base.errors import NmtError

_STOPS_BEFORE_QUOTE = r'(\.+)"(\s*[^<])'  # becomes "\1\2
_BEHIND_QUOTE = re.compile(r"\s*[^<]")


def import_sacremoses() -> Any:
    """The library. Raises NmtError where it is not installed."""
    try:
        import sacremoses  # with all that it imports, which commands on models alone do not need
    except ImportError as error:
        raise NmtError("raw text needs sacremoses: pip install sacremoses, or give tokenised text") from error
    return sacremoses


class PunctuationNormalizer:
    """``normalize-punctuation.perl`` for a language."""

    def __init__(self, language: str) -> None:
        made = import_sacremoses().MosesPunctNormalizer(lang=language, perl_parity=True)
        self._rules = [_rule(pattern, replacement) for pattern, replacement in made.substitutions]

    def normalize(self, line: str) -> str:
        """The line, without blanks at its ends; the script sees the line feed too."""
        for rule in self._rules:
            line = rule(line)
        return line.strip()


def open_tokenizer(language: str) -> Any:
    """``tokenizer.perl`` for a language, as the library's ``MosesTokenizer``."""
    tokenizer = import_sacremoses().MosesTokenizer(lang=language)
    letters, small = _characters(tokenizer.IsAlpha), _characters(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = small.issuperset
    return tokenizer


@functools.cache
def _characters(given: str) -> frozenset[str]:
    return frozenset(given)


def _rule(pattern: str, replacement: str) -> Callable[[str], str]:
    if pattern == _STOPS_BEFORE_QUOTE:
        return quotes_before_stops
    return functools.partial(re.compile(pattern).sub, replacement)


def quotes_before_stops(text: str) -> str:
    """Full stops before a quotation mark that something follows change places with it.

    >>> quotes_before_stops('Er sagt "Ja." und geht.')
    'Er sagt "Ja". und geht.'
    """
    pieces, done, place = [], 0, text.find('."')
    while place >= 0:
        quote = place + 1
        behind = _BEHIND_QUOTE.match(text, quote + 1)
        if behind:
            before = text[done:quote].rstrip(".")
            stops = text[done + len(before) : quote]
            pieces += [before, '"', stops, behind.group()]
            done = behind.end()
        place = text.find('."', max(done, quote))
    return "".join([*pieces, text[done:]])
