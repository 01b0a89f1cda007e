"""The escapes of Moses' tokenizer: characters that mean something in its files, written as entities.

``tokenizer.perl`` writes them without ``-no-escape``; Moses itself never undoes them, so that
``&apos;`` and ``'`` are different words, and what was made from one corpus does not fit another.

>>> unescape("d&apos; un &#124;")
"d' un |"
>>> escape("d'")
'd&apos;'
"""

from __future__ import annotations

import re

_WRITTEN = {
    "&": "&amp;",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&apos;",
    '"': "&quot;",
    "[": "&#91;",
    "]": "&#93;",
}
_READ = {entity: character for character, entity in _WRITTEN.items()} | {
    "&bar;": "|",  # these three were written before 2012
    "&bra;": "[",
    "&ket;": "]",
}
_SPECIAL = re.compile("[&|<>'\"\\[\\]]")
_MARKUP = re.compile(r"[<>|\[\]]")  # what Moses itself takes for markup, factors and non-terminals
_MARKUP_AMONG_FACTORS = re.compile(r"[<>\[\]]")
_ENTITY = re.compile("|".join(map(re.escape, _READ)))


def escape(text: str) -> str:
    """Text as ``tokenizer.perl`` writes it; text that is escaped already would be escaped twice."""
    return _SPECIAL.sub(lambda found: _WRITTEN[found.group()], text)


def unescape(text: str) -> str:
    """Undo the escapes."""
    return _ENTITY.sub(lambda found: _READ[found.group()], text) if "&" in text else text


def without_markup(text: str, *, factored: bool = False) -> str:
    """The characters that mean something to Moses' decoder escaped; ``factored`` words keep their bars."""
    return (_MARKUP_AMONG_FACTORS if factored else _MARKUP).sub(lambda found: _WRITTEN[found.group()], text)


def is_escaped(text: str) -> bool:
    """Whether there is an escape in it."""
    return "&" in text and _ENTITY.search(text) is not None


def needs_escape(text: str) -> bool:
    """Whether there is a character in it that the tokenizer would have escaped."""
    return _SPECIAL.search(_ENTITY.sub("", text)) is not None
