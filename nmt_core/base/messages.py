r"""Messages on the terminal, in logs and on pages: what is in files and names is shown, never obeyed.

A file name, a word of a text or a value in a model's settings may hold control characters; a terminal would
take them for commands that colour, move the cursor or hide what was written.

>>> print(show("a\x1b[31mred\u202e\n"))
a\x1b[31mred\u202e\n
"""

from __future__ import annotations

import contextlib
import re
import sys

# controls (C0, DEL, C1), marks that change the direction of writing, separators of lines, tags, and half characters
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)
_BYTES = range(0xDC80, 0xDD00)  # how Python keeps bytes that are not UTF-8
_LONGEST = 2000  # of one message: a line of a damaged file may have megabytes
_FIRST = 200
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def show(text: object) -> str:
    r"""The text with everything escaped that a terminal would obey; line ends and tabs too."""
    return _UNSAFE.sub(_escaped, str(text))


def one_line(text: object) -> str:
    """The same in one line that people can read: of a longer one the middle is left out."""
    shown = show(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST * 3 // 4]} … {shown[-_LONGEST // 5 :]}"


def first_line(error: BaseException) -> str:
    """The first line of a library's error, for a message of one line."""
    return str(error).strip().partition("\n")[0][:_FIRST]


def say(text: object) -> None:
    """Write one line on standard error; one that is closed is no error."""
    if sys.stderr is None:  # print would take standard output
        return
    with contextlib.suppress(OSError, ValueError):
        print(one_line(text), file=sys.stderr, flush=True)


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, with separators; ``many`` where the plural is not made by an ``s``.

    >>> counted(1, "score"), counted(1200, "score"), counted(0, "entry", "entries")
    ('1 score', '1,200 scores', '0 entries')
    >>> counted(1, "line is", "lines are")
    '1 line is'
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _escaped(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number in _BYTES:
        return f"\\x{number - 0xDC00:02x}"
    return _SHORT.get(found.group()) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
