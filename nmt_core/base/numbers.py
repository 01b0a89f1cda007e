r"""Whole numbers in files and options: ASCII digits, and not more of them than 64 bits hold.

>>> whole_number("12"), whole_number("\u0663"), whole_number("-1"), whole_number("9" * 5000)
(12, None, None, None)
"""

from __future__ import annotations

_DIGITS = 18


def whole_number(text: str) -> int | None:
    """The number from 0 that is written there; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
