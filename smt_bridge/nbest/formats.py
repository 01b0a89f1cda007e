"""Which kind of n-best list a file is, and how each is read; the one place that knows them all.

========== ============================================================ ================================================
name       the lines                                                    written by
========== ============================================================ ================================================
moses      ``id ||| text ||| labels and numbers ||| total ||| ...``     Moses, Marian, amun, Joshua, cdec, SGNMT
factors:N  the same, every word with factors, N is the word (0)         Moses with several output factors
scored     ``id ||| text ||| number``                                   Nematus, GroundHog
fairseq    ``H-id TAB score TAB text`` among others                     fairseq-generate, fairseq-interactive
json       an object per hypothesis, or per sentence                    anybody, Sockeye
tabs       ``id TAB text``                                              anybody
lines:N    N lines of text for each sentence                            JoeyNMT, OpenNMT-py
========== ============================================================ ================================================

All but the last are known by their first lines.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import whole_number
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import look_factored
from smt_bridge.nbest.entry import SEPARATOR, NbestEntry
from smt_bridge.nbest.json_lines import read_json_entries
from smt_bridge.nbest.moses import clean_words, is_row_of_numbers, parse_entry, parse_id
from smt_bridge.nbest.plain import (
    MARK,
    numbered,
    read_fairseq_entries,
    read_line_entries,
    read_scored_entries,
    read_tabbed_entries,
)

AUTO = "auto"
_HEAD = 500  # lines looked at
_TABBED = re.compile(rb"[ ]*[0-9]+[ ]*\t")
Lines = Iterable[bytes]
Reader = Callable[[Lines, str], Iterator[NbestEntry]]
"""From lines and the name of their file to entries."""


def read_entries(path: str, *, shown: str | None = None, format: str = AUTO) -> Iterator[NbestEntry]:
    """Yield the hypotheses of ``path`` (in errors called ``shown``) in the order of the file.

    ``format`` is a name of the table above; "auto" looks at the first lines. Raises FormatError for a malformed line
    and for a file without lines.
    """
    head, lines = _peek(path, shown or path)
    _, read = choose_format(format, head, path=shown or path)
    yield from read(lines, shown or path)


def read_ids(path: str, *, shown: str, format: str = AUTO) -> Iterator[int]:
    """Yield the id of every hypothesis, which is quicker for lists with bars."""
    head, lines = _peek(path, shown)
    kind, read = choose_format(format, head, path=shown)
    if kind in _WITH_BARS:
        for number, line in numbered(lines):
            yield parse_id(line.split(SEPARATOR, 1)[0], path=shown, number=number)
    else:
        for entry in read(lines, shown):
            yield entry.sentence


def _peek(path: str, shown: str) -> tuple[list[bytes], Iterator[bytes]]:
    lines = read_lines(path)
    head = list(itertools.islice(lines, _HEAD))
    if not head:
        raise FormatError(shown, "is empty; expected an n-best list")
    return head, itertools.chain(head, lines)


def check_format(name: str) -> str:
    """Return the name as the table above has it; raises ConfigError for an unknown one."""
    kind, colon, size = name.lower().partition(":")
    if kind == "lines":
        if not whole_number(size):
            raise ConfigError(
                f"--nbest-format {name:.60} needs the number of hypotheses of a sentence, such as lines:5"
            )
        return f"lines:{int(size)}"
    if kind == "factors" and size.isascii() and size.isdigit() and len(size) < 3:
        return f"factors:{int(size)}"
    if colon or (kind != AUTO and kind not in _NAMES):
        raise ConfigError(f"--nbest-format knows {', '.join((AUTO, *_NAMES, 'lines:N'))}, not '{name}'")
    return kind


def choose_format(name: str, head: Sequence[bytes], *, path: str) -> tuple[str, Reader]:
    """The format of that name, or with "auto" the one of the first lines, without its number; and what reads it.

    Raises FormatError for unknown lines.
    """
    kind, _, number = check_format(name).partition(":")
    if kind == "lines":
        return kind, functools.partial(read_line_entries, size=int(number))
    if kind == AUTO:
        filled = [line for line in head if line.strip(b"\r")]
        if not filled:
            raise FormatError(path, "begins with blank lines only; expected an n-best list", line=1)
        kind = _detect(filled, path)
    if kind == "scored":
        return kind, functools.partial(read_scored_entries, costs=_are_costs(head))
    if kind == "factors":
        return kind, functools.partial(_moses_entries, factor=int(number or 0))
    return kind, _SIMPLE[kind]


def _detect(head: Sequence[bytes], path: str) -> str:
    first = next((line for line in head if line.strip(b" \t\r")), b"")
    if first.lstrip(b" \t").startswith(b"{"):
        return "json"
    if any(map(MARK.fullmatch, head)):
        return "fairseq"
    if any(SEPARATOR in line for line in head):
        return _detect_moses(head)
    if all(map(_TABBED.match, head)):
        return "tabs"
    raise FormatError(
        path,
        "is no n-best list known by its first lines: expected 'id ||| text ||| ...' with a whole number from 0 as id,"
        " JSON, fairseq's H- lines or 'id TAB text'; for N lines of text a sentence give --nbest-format lines:N",
        line=1,
    )


def _detect_moses(head: Sequence[bytes]) -> str:
    rows = [line.removesuffix(b"\r").split(SEPARATOR) for line in head]
    if all(len(row) == 3 and is_row_of_numbers(row[2], size=1) for row in rows):
        return "scored"
    texts = [row[1] for row in rows if len(row) > 1 and row[1].strip(b" \t")]
    return "factors" if look_factored([clean_words(text) for text in texts]) else "moses"


def _are_costs(head: Sequence[bytes]) -> bool:
    """Costs are above zero, log-probabilities below."""
    numbers = [line.rpartition(SEPARATOR)[2].strip(b" \t\r") for line in head]
    return any(not number.startswith(b"-") for number in numbers if number.strip(b"0."))


def _moses_entries(lines: Lines, path: str, *, factor: int | None = None) -> Iterator[NbestEntry]:
    for number, line in numbered(lines):
        yield parse_entry(line, path=path, number=number, factor=factor)


_WITH_BARS = ("moses", "factors", "scored")
_SIMPLE: dict[str, Reader] = {
    "moses": _moses_entries,
    "fairseq": read_fairseq_entries,
    "json": read_json_entries,
    "tabs": read_tabbed_entries,
}
_NAMES = ("moses", "factors", "scored", "fairseq", "json", "tabs")
