r"""Phrase tables of Moses, read in windows of lines and written back byte for byte.

::

    das Haus ||| the house ||| 0.5 0.25 0.4 0.3 ||| 0-0 1-1 ||| 12 10 6 ||| ||| {{Key value}}
    source       target        scores               alignment   counts      and whatever follows

Only the third field is ever touched: where its numbers are not separated by single spaces they are
made so (ProbingPT crashes on such a table), the numbers themselves stay the bytes they are, and new
numbers come last. Lines end at ``\n`` only.

A table has no header, so the number of scores is that of its first line and holds for all. Windows
are cut where the source phrase changes and depend on the content alone, so that every way of
working through them (in order, in parallel, again after a crash) sees the same ones. A window is
checked as a whole at the speed of C; line by line it is looked at only when that fails, to mend the
blanks or to name the line that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from math import inf, isfinite
from typing import NamedTuple

from nmt_core.files import read_line_blocks
from smt_bridge.errors import FormatError
from smt_bridge.fields import BLANKS, SEPARATOR, split_fields, split_tokens

WINDOW = 20_000
_LARGEST_WINDOW = 10 * WINDOW  # a source with more targets than this is cut, so that memory stays bounded

SOURCE, TARGET, SCORES = 0, 1, 2
_FIELDS = 4  # source, target, scores, and the rest of the line as one

_NUMBER_CHARACTERS = b"0123456789.eE+- \n"
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NON_TERMINAL = re.compile(rb"(?:^|[ \t])\[[^ \t]*\]\[[^ \t]*\](?:[ \t]|$)")
_LEFT_HAND_SIDE = re.compile(rb"\[[^ \t\[\]]+\]")
_EXPECTED = "expected `source ||| target ||| scores`, perhaps with more fields"

Row = list[bytes]
"""Source, target, scores and, where the line goes on, the rest; ``fields.join_fields`` makes the line of it."""


class Columns(NamedTuple):
    """The lines of a window, field by field; ``rests`` is what follows the scores' separator, None for no separator.

    Lists of bytes, and not one list for every line, whose many objects would keep Python's garbage
    collector busy for longer than all the rest takes.
    """

    sources: list[bytes]
    targets: list[bytes]
    scores: list[bytes]
    rests: Sequence[bytes | None]


class Window(NamedTuple):
    """Consecutive lines of a table, with all that is needed to work on them elsewhere.

    ``first`` is the number of the first line, from 1; ``scores`` the number of scores per line.
    """

    path: str
    first: int
    scores: int
    lines: list[bytes]


def read_windows(path: str) -> Iterator[Window]:
    """Yield the table as windows of about ``WINDOW`` lines, in order.

    Raises FormatError for an empty file, a hierarchical rule table and a malformed first line; the
    other lines are checked by ``split_window``.
    """
    number = 1
    scores = 0
    for lines in cut_at_sources(read_line_blocks(path), size=WINDOW):
        if number == 1:
            scores = check_beginning(path, lines)
        yield Window(path, number, scores, lines)
        number += len(lines)
    if number == 1:
        raise FormatError(path, f"the file is empty; {_EXPECTED}")


def cut_at_sources(blocks: Iterable[list[bytes]], *, size: int) -> Iterator[list[bytes]]:
    """Cut lines into lists of ``size`` or more, such that lines with the same source stay together.

    How the lines come in ``blocks`` makes no difference.
    """
    waiting: list[bytes] = []
    place = size  # the first line that may begin a new window
    most = max(size, _LARGEST_WINDOW)
    for block in blocks:
        waiting += block
        while place < len(waiting):
            source = waiting[place - 1].partition(SEPARATOR)[0]
            while place < min(len(waiting), most) and waiting[place].partition(SEPARATOR)[0] == source:
                place += 1
            if place == len(waiting):
                break
            yield waiting[:place]
            waiting = waiting[place:]
            place = size
    if waiting:
        yield waiting


def check_beginning(path: str, lines: Sequence[bytes]) -> int:
    """Look at the first lines of a table; the number of its scores.

    Raises FormatError when they are not those of a phrase table.
    """
    if lines[0].startswith(b"[X] ||| "):
        raise FormatError(path, "this is a Hiero grammar (`[X] ||| ...`); only phrase tables can be scored", line=1)
    beginning = [split_fields(line, at_most=_FIELDS) for line in lines[:100]]
    if all(len(row) > SCORES and _ends_in_label(row[SOURCE]) and _ends_in_label(row[TARGET]) for row in beginning):
        raise FormatError(path, _RULES.format("phrases end in a label such as [X]"), line=1)
    return count_scores(path, lines[0])


_RULES = "this is a table of hierarchical or syntax rules ({}); only phrase tables can be scored"


def count_scores(path: str, line: bytes) -> int:
    """The number of scores of a table's first line; raises FormatError when it is malformed."""
    row = _checked_row(path, 1, line)
    return len(_checked_scores(path, 1, row))


def split_window(window: Window) -> Columns:
    """Cut the lines into fields; in the third, single blanks stand between the numbers.

    Raises FormatError, naming the line, for too few fields, hierarchical rules, a number of scores
    that is not that of the first line, and scores that are not plain numbers of at least 0.
    """
    lines = window.lines
    fields = list(chain.from_iterable(line.split(SEPARATOR, _FIELDS - 1) for line in lines))
    whole = len(fields) == _FIELDS * len(lines)  # and no line has less, since none can have more
    if whole:
        columns = Columns(fields[0::_FIELDS], fields[1::_FIELDS], fields[2::_FIELDS], fields[3::_FIELDS])
        if _all_plain(columns.scores, window.scores) and not _may_have_rules(columns):
            return columns
    return _split_slowly(window)


def _split_slowly(window: Window) -> Columns:
    """The same line by line, to mend the blanks or to name the line that is wrong."""
    rows = [line.split(SEPARATOR, _FIELDS - 1) for line in window.lines]
    _refuse_rules(window, rows)
    for number, (line, row) in enumerate(zip(window.lines, rows, strict=True), start=window.first):
        _mend_row(window, number, line, row)
    rests = [row[3] if len(row) == _FIELDS else None for row in rows]
    return Columns([row[SOURCE] for row in rows], [row[TARGET] for row in rows], [row[SCORES] for row in rows], rests)


def _may_have_rules(columns: Columns) -> bool:
    return any(b"][" in b"\n".join(phrases) for phrases in (columns.sources, columns.targets))


def append_scores(columns: Columns, numbers: Sequence[bytes]) -> bytes:
    r"""The lines, each ending in ``\n``, with ``numbers[i]`` (one or more, single blanks between) as last scores."""
    lines = zip(columns.sources, columns.targets, columns.scores, numbers, columns.rests, strict=True)
    if all(columns.rests) and all(scores.endswith(b" ") for scores in columns.scores):
        return b"\n".join([b"%b|||%b|||%b%b |||%b" % line for line in lines] + [b""])  # type: ignore[str-format]
    return b"".join(_joined(*line) for line in lines)


def _joined(source: bytes, target: bytes, scores: bytes, added: bytes, rest: bytes | None) -> bytes:
    scores = scores + added + b" " if scores.endswith(b" ") else _appended(scores, added)
    return SEPARATOR.join([source, target, scores] + ([] if rest is None else [rest])) + b"\n"


def is_grouped(sources: Iterable[bytes]) -> bool:
    """Whether equal sources stand side by side."""
    runs = [source for source, _ in groupby(sources)]
    return len(runs) == len(set(runs))


def bracketed_last_tokens(columns: Columns) -> int:
    """How many lines have a phrase whose last token is ``[...]``; Moses drops that token without a word."""
    return sum(
        (b"]" in source and _ends_in_label(source)) or (b"]" in target and _ends_in_label(target))
        for source, target in zip(columns.sources, columns.targets, strict=True)
    )


def _all_plain(fields: Sequence[bytes], scores: int) -> bool:
    """Whether all score fields are `` n n n `` with ``scores`` numbers; False where it takes a closer look to know."""
    text = b"\n".join(fields)
    if text.translate(None, _NUMBER_CHARACTERS) or b"  " in text or b" -" in text:
        return False
    bordered = text.count(b" \n ") == len(fields) - 1 and text.startswith(b" ") and text.endswith(b" ")
    if not bordered or {field.count(b" ") for field in fields} != {scores + 1}:
        return False
    try:
        return max(map(float, set(text.split()))) < inf
    except ValueError:
        return False


def _mend_row(window: Window, number: int, line: bytes, row: Row) -> None:
    """Check one line and put its scores into normal form, in place."""
    _checked_row(window.path, number, line)
    tokens = _checked_scores(window.path, number, row)
    if len(tokens) != window.scores:
        problem = f"has {len(tokens)} scores, but the first line has {window.scores}; Moses needs as many in every line"
        raise FormatError(window.path, problem, line=number)
    row[SCORES] = _normal_scores(row[SCORES], tokens, last=len(row) < _FIELDS)


def _normal_scores(field: bytes, tokens: Sequence[bytes], *, last: bool) -> bytes:
    numbers = b" " + b" ".join(tokens)
    if not last:
        return numbers + b" "
    if field.endswith(b"\r"):
        return numbers + b"\r"
    return numbers + b" " if field.endswith((b" ", b"\t")) else numbers


def _appended(scores: bytes, added: bytes) -> bytes:
    """For a score field that ends the line, without a blank: the numbers go before a carriage return."""
    if scores.endswith(b"\r"):
        return b"%b %b\r" % (scores[:-1], added)
    return b"%b %b" % (scores, added)


def _checked_row(path: str, number: int, line: bytes) -> Row:
    row = split_fields(line, at_most=_FIELDS)
    if not line.strip(b" \t\r"):
        raise FormatError(path, f"the line is blank, Moses would stop here; {_EXPECTED}", line=number)
    if len(row) <= SCORES:
        raise FormatError(path, f"has {len(row)} of at least 3 fields, Moses would stop here; {_EXPECTED}", line=number)
    return row


def _checked_scores(path: str, number: int, row: Row) -> list[bytes]:
    """The numbers of the third field as they stand."""
    field = row[SCORES]
    tokens = split_tokens(field[:-1] if len(row) < _FIELDS and field.endswith(b"\r") else field)
    if not tokens:
        raise FormatError(path, f"has no scores; {_EXPECTED}", line=number)
    for place, token in enumerate(tokens, start=1):
        problem = _problem_with(token)
        if problem:
            shown = token[:40].decode("utf-8", "backslashreplace")
            raise FormatError(path, f"score {place} is `{shown}`, {problem}", line=number)
    return tokens


def _problem_with(token: bytes) -> str:
    if not _NUMBER.fullmatch(token):
        return "not a plain number (an unescaped | in a phrase shifts the fields); Moses would stop here"
    if float(token) < 0.0:
        return "but must not be negative: scores are probabilities, of which Moses takes the logarithm"
    return "" if isfinite(float(token)) else "which is too large"


def _refuse_rules(window: Window, rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows, start=window.first):
        if any(_NON_TERMINAL.search(field) for field in row[:SCORES]):
            raise FormatError(window.path, _RULES.format("non-terminals such as [X][X]"), line=number)


def _ends_in_label(phrase: bytes) -> bool:
    words = phrase.rstrip(BLANKS).replace(b"\t", b" ").rsplit(b" ", 1)
    return _LEFT_HAND_SIDE.fullmatch(words[-1]) is not None
