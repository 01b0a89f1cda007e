r"""Phrase tables of Moses, read in windows of lines and written back byte for byte.

::

    das Haus ||| the house ||| 0.5 0.25 0.4 0.3 ||| 0-0 1-1 ||| 12 10 6 ||| ||| {{Key value}}
    source       target        scores               alignment   counts      and whatever follows

and tables of hierarchical and syntax rules (``lines.py``), which have the same fields.

Only the third field is ever changed. Its numbers keep their bytes, and new numbers come last. Between them stand single
blanks: ProbingPT crashes on other tables. Lines end at ``\n`` only.

A table has no header, so the number of scores is that of its first line and holds for all. Windows end where the source
phrase changes and depend on the content alone, so that work in order, in parallel and after a crash sees the same ones.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.files import read_blocks
from smt_bridge.errors import FormatError
from smt_bridge.metadata import Metadata, metadata_path
from smt_bridge.moses.feature_functions import binarised_kind
from smt_bridge.moses_lines import SEPARATOR, phrase_of
from smt_bridge.tables.lines import (
    EXPECTED,
    FIELDS,
    LOOKED_AT,
    SCORES,
    SOURCE,
    TARGET,
    Row,
    check_beginning,
    mend_row,
    rule_words,
)

WINDOW = 20_000
_LARGEST_WINDOW = 10 * WINDOW  # a source with more targets than this is cut, so that memory stays bounded,
_LARGEST_BYTES = 64 << 20  # and so are lines that are longer than any phrase

_LACKS = {
    "ProbingPT": ", in which source phrases are hashes without their words",
    "PhraseDictionaryCompact": ", in which source phrases are fingerprints without their words",
}
_NUMBER = rb"(?: [0-9]{1,300}(?:\.[0-9]{0,300})?(?:[eE]-[0-9]{1,300})?)"
"""As programs write it: neither negative nor too large."""


@dataclass(frozen=True)
class Fields:
    """The lines of a window, field by field; ``mark`` is a byte order mark in front of them, or nothing."""

    rows: list[Row]
    mark: bytes = b""

    @functools.cached_property
    def sources(self) -> list[bytes]:
        """The first fields."""
        return [row[0] for row in self.rows]

    @functools.cached_property
    def targets(self) -> list[bytes]:
        """The second fields."""
        return [row[1] for row in self.rows]

    @functools.cached_property
    def scores(self) -> list[bytes]:
        """The third fields, with single blanks between numbers."""
        return [row[SCORES] for row in self.rows]


class Window(NamedTuple):
    r"""Consecutive lines of a table, with all that is needed to work on them elsewhere.

    ``first`` is the number of the first line, from 1; ``scores`` the number of scores per line;
    ``content`` the lines with ``\n`` between them; ``rules`` whether they are hierarchical or syntax rules.
    """

    path: str
    first: int
    scores: int
    content: bytes
    rules: bool = False

    @property
    def size(self) -> int:
        """How many lines there are."""
        return self.content.count(b"\n") + 1

    @property
    def lines(self) -> list[bytes]:
        """Each line by itself."""
        return self.content.split(b"\n")

    def beginning(self, lines: int) -> Window:
        """The first lines alone."""
        return self._replace(content=b"\n".join(self.content.split(b"\n", lines)[:lines]))


def read_windows(path: str) -> Iterator[Window]:
    """Yield the table as windows of about ``WINDOW`` lines, in order.

    Raises FormatError for an empty file, a binarised table and a malformed first line; the other lines are checked by
    ``split_window``.
    """
    window = None
    for first, content in cut_at_sources(table_blocks(path), size=WINDOW):
        if window is None:
            beginning = check_beginning(path, content.split(b"\n", LOOKED_AT)[:LOOKED_AT])
            window = Window(path, 1, beginning.scores, b"", beginning.rules)
        yield window._replace(first=first, content=content)
    if window is None:
        raise FormatError(path, f"the file is empty; {EXPECTED}")


def check_described(window: Window, metadata: Metadata) -> None:
    """Raise InputError where the metadata are not of a table with as many scores a line as this window's."""
    path, before, added = metadata_path(window.path), metadata.scores_before, len(metadata.columns)
    if before is None or not added:
        raise InputError(path, "is not metadata of `smt-bridge rescore-table`; rescore the table again")
    if before + added != window.scores:
        says = f"says {counted(before, 'score')} and {added} more, but the lines have {window.scores}"
        raise InputError(path, f"{says}; rescore the table again")


def table_blocks(path: str) -> Iterator[bytes]:
    """The lines of a table of text. Raises FormatError for a binarised one."""
    kind = binarised_kind(path)
    if kind is None:
        return read_blocks(path, as_it_is=True)
    lacks = _LACKS.get(kind, "")
    raise FormatError(path, f"is a binarised table ({kind}){lacks}; give the text that it was made from")


def cut_at_sources(blocks: Iterable[bytes], *, size: int) -> Iterator[tuple[int, bytes]]:
    r"""Cut into windows of ``size`` lines or more: the number of the first line of each, and its content.

    Lines with the same source stay together. ``blocks`` end where a line does; how lines come in them makes no
    difference. Between the lines of a window stands ``\n``.
    """
    first, window, size_now, octets = 1, list[bytes](), 0, 0
    for block in blocks:
        content = block.removesuffix(b"\n")
        lines = content.count(b"\n") + 1
        is_inside = size_now + lines <= size and octets + len(content) < _LARGEST_BYTES  # no window ends in this block
        for piece in (content,) if is_inside else content.split(b"\n"):
            octets += len(piece) + 1
            if window and (octets > _LARGEST_BYTES or (size_now >= size and _ends(window[-1], piece, size_now, size))):
                yield first, b"\n".join(window)
                first, window, size_now, octets = first + size_now, [], 0, len(piece) + 1
            window.append(piece)
            size_now += lines if is_inside else 1
    if window:
        yield first, b"\n".join(window)


def _ends(last: bytes, following: bytes, lines: int, size: int) -> bool:
    """Whether a window of so many lines, at least ``size``, ends before the following line."""
    return lines >= max(size, _LARGEST_WINDOW) or _source(following) != _source(last.rpartition(b"\n")[2])


def _source(line: bytes) -> bytes:
    return phrase_of(line.partition(SEPARATOR)[0])


def split_window(window: Window) -> Fields:
    """Cut the lines into fields; in the third, single blanks stand between the numbers.

    Raises FormatError, naming the line, for too few fields, another number of scores than in the first line, and
    scores that are not plain numbers of at least 0.
    """
    content = window.content
    is_plain = re.compile(_NUMBER + b"{%d} " % window.scores).fullmatch
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=window.first):
        row = line.split(SEPARATOR, FIELDS - 1)
        if len(row) < FIELDS or not is_plain(row[SCORES]):
            mend_row(window.path, number, row, scores=window.scores)
        rows.append(row)
    mark = codecs.BOM_UTF8 if window.first == 1 and content.startswith(codecs.BOM_UTF8) else b""
    rows[0][0] = rows[0][0].removeprefix(mark)
    return Fields(rows, mark)


def append_scores(columns: Fields, numbers: Sequence[bytes]) -> bytes:
    r"""The lines, each ending in ``\n``, with ``numbers[i]`` (one or more, single blanks between) as last scores."""
    lines = []
    for (source, target, field, *rest), new in zip(columns.rows, numbers, strict=True):
        scores = field[:-1] if field.endswith((b" ", b"\r")) else field
        lines.append(SEPARATOR.join((source, target, b"%b %b%b" % (scores, new, field[len(scores) :]), *rest)))
    return columns.mark + b"\n".join([*lines, b""])


def phrases_of(window: Window, columns: Fields) -> list[tuple[bytes, bytes]]:
    """The sources and targets that models read: of rules what is left without labels and non-terminals.

    Raises FormatError, naming the line, for what is no rule in a table of rules.
    """
    pairs = [(row[SOURCE], row[TARGET]) for row in columns.rows]
    return _words_of_rules(window, pairs) if window.rules else pairs


def _words_of_rules(window: Window, pairs: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    words: dict[bytes, bytes] = {}
    for number, pair in enumerate(pairs, start=window.first):
        for phrase in pair:
            if phrase not in words:
                try:
                    words[phrase] = rule_words(phrase)
                except ValueError as error:
                    raise FormatError(window.path, str(error), line=number) from error
    return [(words[source], words[target]) for source, target in pairs]
