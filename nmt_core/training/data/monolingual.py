"""Monolingual text, of which corpora from the web may hold lines that are no text: these are skipped and counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.files import read_lines

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


class MonolingualText:
    """The lines of a UTF-8 file (plain or gzip); lines with other bytes, or with control characters, are left out."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped = 0
        self.first_skipped: int | None = None

    def __iter__(self) -> Iterator[str]:
        """Read the file. Raises InputError when it has no line of text at all."""
        self.skipped, self.first_skipped = 0, None
        number = 0
        for number, line in enumerate(read_lines(self.path), start=1):
            text = _text(line)
            if text is not None:
                yield text
                continue
            self.skipped += 1
            self.first_skipped = self.first_skipped or number
        if self.skipped == number:
            raise InputError(self.path, f"has no line of UTF-8 text ({counted(number, 'line')}); is it a text file?")

    @property
    def note(self) -> str | None:
        """What to tell the user of the lines left out, once the text was read."""
        if not self.skipped:
            return None
        lines = counted(self.skipped, "line is", "lines are")
        return f"{self.path}:{self.first_skipped}: {lines} no UTF-8 text and left out; this is the first"


def _text(line: bytes) -> str | None:
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text
