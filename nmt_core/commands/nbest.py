"""A line of an n-best list as Moses writes it."""

from __future__ import annotations


def nbest_line(number: int, text: str, features: str, score: float) -> str:
    """``number ||| text ||| features ||| score``; three bars inside the text, which would cut it, are escaped."""
    escaped = text.replace("|||", "&#124;&#124;&#124;")
    return f"{number} ||| {escaped} ||| {features} ||| {score:.6f}"
