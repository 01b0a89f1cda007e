"""Characters that Moses takes for markup, factors and non-terminals, and how its tokenizer writes them."""

from __future__ import annotations

import re

_HARMFUL = re.compile(r"[<>|\[\]]")
_HARMFUL_IN_FACTORS = re.compile(r"[<>\[\]]")
_ESCAPES = {"<": "&lt;", ">": "&gt;", "|": "&#124;", "[": "&#91;", "]": "&#93;"}


def without_markup(line: str, *, factored: bool = False) -> str:
    """The sentence with these characters escaped, as both systems read it; ``factored`` words keep bars."""
    return (_HARMFUL_IN_FACTORS if factored else _HARMFUL).sub(lambda found: _ESCAPES[found[0]], line)
