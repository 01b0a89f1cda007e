r"""Characters that are no text: what is mended, what is removed, and which lines are binary junk.

Two accidents of encoding are undone. C1 control characters are Windows-1252 that was read as Latin-1
(U+0092 for an apostrophe), and some C0 control characters are general punctuation of which only the
lower byte was left (U+0019 for U+2019). Other control characters, private and unassigned ones, and
invisible marks of direction go; joiners, which some scripts need, stay.

>>> ascii(clean("It\x19s  a \u200btest\x92\t"))
"'It\\u2019s a test\\u2019'"
"""

from __future__ import annotations

import re
import unicodedata

from nmt_core.config import Config

NO_BREAK_SPACE = "\u00a0"
_NO_BREAK_SPACES = "\u00a0\u2007\u202f"
_WHITE = "\t\n\x0b\x0c\r\x85"
_REPLACEMENT = "\ufffd"
_LOWER_BYTES = {byte: chr(0x2000 + byte) for byte in (0x13, 0x14, 0x18, 0x19, 0x1C, 0x1D)}
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_NO_TEXT = ("Cc", "Cn", "Co", "Cs")
_SPACES = re.compile(" {2,}")


class CleanupConfig(Config):
    """Nothing to choose; ``cleanup: null`` leaves the characters alone."""


class Cleanup:
    """The first step: characters that are no text go, spaces are single."""

    def apply(self, line: str) -> str:
        """Clean."""
        return clean(line)

    def undo(self, line: str) -> str:
        """Nothing comes back."""
        return line


class _Table(dict[int, str]):
    """What ``str.translate`` puts for each character; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = result = _cleaned(chr(code))
        return result


def clean(line: str) -> str:
    """The line without control characters, composed (NFC), with single spaces between words and none outside."""
    if not (line.isascii() and line.isprintable()):
        line = unicodedata.normalize("NFC", line.translate(_TABLE))
    return _SPACES.sub(" ", line).strip(" ")


def is_junk(line: str, *, maximum_share: float) -> bool:
    """Whether the line is no text: a NUL in it, or too large a share of control characters and the like."""
    if line.isprintable() and _REPLACEMENT not in line:
        return False
    return "\0" in line or sum(map(_is_no_text, line)) > maximum_share * len(line)


def _is_no_text(char: str) -> bool:
    return char == _REPLACEMENT or (unicodedata.category(char) in _NO_TEXT and char not in _WHITE)


def _cleaned(char: str) -> str:
    code = ord(char)
    if code in _LOWER_BYTES:
        return _LOWER_BYTES[code]
    if 0x80 <= code < 0xA0:
        return bytes([code]).decode("cp1252", "ignore")
    if char in _NO_BREAK_SPACES:
        return NO_BREAK_SPACE
    if char in _WHITE or unicodedata.category(char) in ("Zs", "Zl", "Zp"):
        return " "
    return "" if _is_no_text(char) or _INVISIBLE.match(char) else char


_TABLE = _Table()
