"""The byte order mark that some editors put before UTF-8 text: it is no part of the first word."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Iterator

from nmt_core.messages import say

MARK = codecs.BOM_UTF8


def without_mark(blocks: Iterator[bytes], shown: str) -> Iterator[bytes]:
    """The content without a mark at its start, which is told once for a file, called ``shown``."""
    first = next(blocks, b"")
    if first.startswith(MARK):
        _tell(shown)
        first = first.removeprefix(MARK)
    if first:
        yield first
    yield from blocks


@functools.cache
def _tell(shown: str) -> None:
    import multiprocessing  # here, since hardly any file has a mark

    if multiprocessing.parent_process() is None:  # the processes of a job read what the program itself has read
        say(f"{shown}: begins with a byte order mark, which is left out")
