r"""Phrase tables of Moses, read in windows of lines and written back byte for byte.

::

    das Haus ||| the house ||| 0.5 0.25 0.4 0.3 ||| 0-0 1-1 ||| 12 10 6 ||| ||| {{Key value}}
    source       target        scores               alignment   counts      and whatever follows

and tables of hierarchical and syntax rules (``rule_phrases``), which have the same fields.

Only the third field is ever touched: where its numbers are not separated by single spaces they are
made so (ProbingPT crashes on such a table), the numbers themselves stay the bytes they are, and new
numbers come last. Lines end at ``\n`` only.

A table has no header, so the number of scores is that of its first line and holds for all. Windows
are cut where the source phrase changes and depend on the content alone, so that every way of
working through them (in order, in parallel, again after a crash) sees the same ones. A window is cut
and checked as a whole, with NumPy; line by line it is looked at only when that fails, to mend the
blanks or to name the line that is wrong.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.files import ShareRead, read_blocks
from smt_bridge.errors import FormatError
from smt_bridge.moses.feature_kinds import binarised_kind
from smt_bridge.moses_lines import SEPARATOR, phrase_of
from smt_bridge.tables.fields import cut_fields
from smt_bridge.tables.lines import (
    EXPECTED,
    FIELDS,
    LOOKED_AT,
    SCORES,
    SOURCE,
    TARGET,
    check_beginning,
    mend_row,
    refuse_rules,
)
from smt_bridge.tables.rules import ends_in_label, rule_words

WINDOW = 20_000
_LARGEST_WINDOW = 10 * WINDOW  # a source with more targets than this is cut, so that memory stays bounded,
_LARGEST_BYTES = 64 << 20  # and so are lines that are longer than any phrase

_LACKS = {
    "ProbingPT": ", in which source phrases are hashes without their words",
    "PhraseDictionaryCompact": ", in which source phrases are fingerprints without their words",
}
_RULES = (
    "this is a table of hierarchical or syntax rules (phrases end in a label such as [X]), which"
    " `rescore-table`, `filter-table`, `report --table`, `wire --table` and `doctor` take; give a phrase table"
)
_NEWLINE, _BLANK, _RETURN = b"\n \r"
_AT_ONCE = 1000  # lines that are put together while they are in the processor's cache


class Columns(NamedTuple):
    r"""The lines of a window, field by field. Shapes: N lines.

    ``content`` are the lines, with ``\n`` between them and single blanks between scores; in it the third fields begin
    and end at the places ``begins_N`` and ``ends_N``.
    """

    content: bytes
    sources: list[bytes]
    targets: list[bytes]
    begins_N: npt.NDArray[np.int64]
    ends_N: npt.NDArray[np.int64]

    @property
    def scores(self) -> list[bytes]:
        """The third fields, cut anew each time."""
        spans = zip(self.begins_N.tolist(), self.ends_N.tolist(), strict=True)
        return [self.content[begin:end] for begin, end in spans]


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


def read_windows(path: str, share: ShareRead | None = None, *, rules: bool = False) -> Iterator[Window]:
    """Yield the table as windows of about ``WINDOW`` lines, in order; ``share`` measures how far it was read.

    Raises FormatError for an empty file, a binarised table, a table of rules unless ``rules`` are wanted too, and a
    malformed first line; the other lines are checked by ``split_window``.
    """
    window = None
    for first, content in _numbered_parts(table_blocks(path, share), size=WINDOW):
        if window is None:
            beginning = check_beginning(path, content.split(b"\n", LOOKED_AT)[:LOOKED_AT])
            if beginning.rules and not rules:
                raise FormatError(path, _RULES, line=1)
            window = Window(path, 1, beginning.scores, content, beginning.rules)
        yield window._replace(first=first, content=content)
    if window is None:
        raise FormatError(path, f"the file is empty; {EXPECTED}")


def table_blocks(path: str, share: ShareRead | None = None) -> Iterator[bytes]:
    """The lines of a table of text. Raises FormatError for a binarised one."""
    kind = binarised_kind(path)
    if kind is None:
        return read_blocks(path, as_it_is=True, share=share)
    lacks = _LACKS.get(kind, "")
    raise FormatError(path, f"is a binarised table ({kind}){lacks}; give the text that it was made from")


def cut_at_sources(blocks: Iterable[bytes], *, size: int) -> Iterator[bytes]:
    r"""Cut lines into parts of ``size`` lines or more, such that lines with the same source stay together.

    How the lines come in ``blocks``, which end where a line does, makes no difference. The parts have no
    ``\n`` at their end.
    """
    return (part for _, part in _numbered_parts(blocks, size=size))


def _numbered_parts(blocks: Iterable[bytes], *, size: int) -> Iterator[tuple[int, bytes]]:
    """The same parts, and the number of the first line of each, from 1."""
    first, waiting, counts = 1, [b""], [0]
    place, begin = size, 0  # the first line that may begin a new part, and where it does, once it is there
    for block in blocks:
        waiting.append(block if block.endswith(b"\n") else block + b"\n")
        counts.append(waiting[-1].count(b"\n"))
        if sum(counts) <= size and sum(map(len, waiting)) <= _LARGEST_BYTES:
            continue
        while True:
            content, lines = b"".join(waiting), sum(counts)
            if not begin and lines > size:
                begin = _begin_of(size, waiting, counts)
            if begin:
                place, begin = _behind_source(content, place, begin, most=max(size, _LARGEST_WINDOW))
            cut = min(begin or len(content), _behind_most_bytes(content))
            waiting, counts = [content], [lines]
            if cut == len(content):
                break
            part = content[: cut - 1]
            yield first, part
            done = place if cut == begin else part.count(b"\n") + 1
            waiting, counts, place, begin, first = [content[cut:]], [lines - done], size, 0, first + done
    if any(waiting):
        yield first, b"".join(waiting)[:-1]


def _begin_of(line: int, blocks: Sequence[bytes], counts: Sequence[int]) -> int:
    """Where a line that is not the first begins, in blocks that have so many lines each."""
    begin = 0
    for block, count in zip(blocks, counts, strict=True):
        if line <= count:
            return begin + int(np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)[line - 1]) + 1
        begin, line = begin + len(block), line - count
    raise ValueError(f"there is no line {line} more")


def _behind_source(content: bytes, line: int, begin: int, *, most: int) -> tuple[int, int]:
    """The first line from ``line`` on, but not behind ``most``, with another source than before it; where it begins."""
    source = _source(content, content.rfind(b"\n", 0, begin - 1) + 1)
    while line < most and begin < len(content) and _source(content, begin) == source:
        line, begin = line + 1, content.index(b"\n", begin) + 1
    return line, begin


def _behind_most_bytes(content: bytes) -> int:
    """Behind the lines that have their ends among the first ``_LARGEST_BYTES``, or behind the first line."""
    if len(content) <= _LARGEST_BYTES:
        return len(content)
    return (content.rfind(b"\n", 0, _LARGEST_BYTES + 1) + 1) or content.index(b"\n") + 1


def _source(content: bytes, begin: int) -> bytes:
    return phrase_of(content[begin : content.index(b"\n", begin)].partition(SEPARATOR)[0])


def split_window(window: Window) -> Columns:
    """Cut the lines into fields; in the third, single blanks stand between the numbers.

    A byte order mark before the table stays in the content and is no part of the first source. Raises FormatError,
    naming the line, for too few fields, rules among phrases, a number of scores
    that is not that of the first line, and scores that are not plain numbers of at least 0.
    """
    fields = cut_fields(window.content, scores=window.scores, rules=window.rules)
    columns = _split_slowly(window) if fields is None else Columns(window.content, *fields)
    if window.first == 1:
        columns.sources[0] = columns.sources[0].removeprefix(codecs.BOM_UTF8)
    return columns


def _split_slowly(window: Window) -> Columns:
    """The same line by line, to mend the blanks or to name the line that is wrong."""
    lines = window.lines
    rows = [line.split(SEPARATOR, FIELDS - 1) for line in lines]
    if not window.rules:
        refuse_rules(window.path, window.first, rows)
    for number, (line, row) in enumerate(zip(lines, rows, strict=True), start=window.first):
        mend_row(window.path, number, line, row, scores=window.scores)
    lines = [SEPARATOR.join(row) for row in rows]
    starts_N = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
    begins_N = starts_N + [len(row[SOURCE]) + len(row[TARGET]) + 2 * len(SEPARATOR) for row in rows]
    ends_N = begins_N + [len(row[SCORES]) for row in rows]
    return Columns(b"\n".join(lines), [row[SOURCE] for row in rows], [row[TARGET] for row in rows], begins_N, ends_N)


def append_scores(columns: Columns, numbers: Sequence[bytes]) -> bytes:
    r"""The lines, each ending in ``\n``, with ``numbers[i]`` (one or more, single blanks between) as last scores."""
    if len(numbers) != len(columns.sources):
        raise ValueError(f"{len(numbers)} new scores for {len(columns.sources)} lines")
    content = columns.content
    last_N = np.frombuffer(content, np.uint8)[columns.ends_N - 1]
    places = (columns.ends_N - ((last_N == _BLANK) | (last_N == _RETURN))).tolist()
    blocks, reached = [], 0
    for first in range(0, len(places), _AT_ONCE):
        chosen = slice(first, first + _AT_ONCE)
        bounds = [reached, *places[chosen]]
        pieces = [b" "] * (3 * (len(bounds) - 1))
        pieces[::3] = [content[begin:end] for begin, end in pairwise(bounds)]
        pieces[2::3] = numbers[chosen]
        blocks.append(b"".join(pieces))
        reached = bounds[-1]
    return b"".join([*blocks, content[reached:], b"\n"])


def phrases_of(window: Window, columns: Columns) -> tuple[list[bytes], list[bytes]]:
    """The sources and the targets that models read: of rules what is left without labels and non-terminals.

    Raises FormatError, naming the line, for what is no rule in a table of rules.
    """
    if not window.rules:
        return columns.sources, columns.targets
    return _words_of_rules(window, columns.sources), _words_of_rules(window, columns.targets)


def _words_of_rules(window: Window, fields: Sequence[bytes]) -> list[bytes]:
    words: dict[bytes, bytes] = {}
    for number, one in enumerate(fields, start=window.first):
        if one not in words:
            try:
                words[one] = rule_words(one)
            except ValueError as error:
                raise FormatError(window.path, str(error), line=number) from error
    return [words[one] for one in fields]


def is_grouped(sources: Iterable[bytes]) -> bool:
    """Whether equal sources stand side by side."""
    runs = [source for source, _ in groupby(map(phrase_of, sources))]
    return len(runs) == len(set(runs))


def bracketed_last_tokens(columns: Columns) -> int:
    """How many lines have a phrase whose last token is ``[...]``; Moses drops that token without a word."""
    return sum(
        (b"]" in source and ends_in_label(source)) or (b"]" in target and ends_in_label(target))
        for source, target in zip(columns.sources, columns.targets, strict=True)
    )
