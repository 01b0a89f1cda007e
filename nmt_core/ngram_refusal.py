"""Why KenLM does not read a language model: what it threw, as one line that says where in the file.

Its messages name places in its own source and bytes of the unpacked text, and hold whole words of the file.
"""

from __future__ import annotations

import os
import re

from nmt_core.errors import InputError
from nmt_core.files import read_beginning, read_blocks
from nmt_core.ngram_binary import MAGIC

_LONGEST = 200  # characters of what is said; a word of a damaged file may have megabytes
_SOURCE = re.compile(r"^[^ ]+\.(?:cc|hh):[0-9]+ in .*? threw [A-Za-z_:]+(?: because `.*?'\.|\.)\s", re.DOTALL)
_PLACE = re.compile(r"(?: Error)?( in the [0-9]+-gram at byte [0-9]+)? Byte: ([0-9]+)$")
_ADVICE = re.compile(r"\. (?=If |This is |For more )")  # for those who compile it
_ENDS = ("End of file", 'Could not parse "" into a float')


def refusal(path: str, error: Exception) -> InputError:
    """The error to raise for what KenLM threw: of the packed data, where these are damaged, else of their content."""
    text = _decoded(error).removeprefix(f"Cannot read model '{os.fsencode(path)!r}' (").removesuffix(")")
    binary = read_beginning(path, len(MAGIC)) == MAGIC
    found = None if binary else _PLACE.search(text)
    line = None if found is None else _line_at(path, int(found[2]), begun=found[1] is not None)
    problem = " ".join(_SOURCE.sub("", _PLACE.sub("", text)).split())
    problem = _ADVICE.split(problem)[0].removesuffix(".")
    if problem in _ENDS:
        return InputError(path, "ends too early (a truncated file?); copy it again", line=line)
    if len(problem) > _LONGEST:
        problem = f"{problem[: _LONGEST // 2]} … {problem[-_LONGEST // 2 :]}"
    return InputError(path, f"KenLM cannot read it as an ARPA or binary model ({problem})", line=line)


def _decoded(error: Exception) -> str:
    """Its text; KenLM's module gives up on one that is no UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "backslashreplace")
    return str(error)


def _line_at(path: str, place: int, *, begun: bool) -> int:
    """The number of the line that KenLM was at; where it had not ``begun`` an n-gram, it had just read the line.

    Raises InputError for packed data that are damaged, and for a line above the limit.
    """
    left, lines = place if begun else place - 1, 1
    for block in read_blocks(path, as_it_is=True):
        lines += block.count(b"\n", 0, max(0, left))
        left -= len(block)
    return lines
