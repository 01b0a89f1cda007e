r"""Which kind of n-best list a file is, and how each is read; the one place that knows them all.

========== ============================================================ ================================================
name       the lines                                                    written by
========== ============================================================ ================================================
moses      ``id ||| text ||| labels and numbers ||| total ||| ...``     Moses, Marian, amun, Joshua, cdec, SGNMT
factors:N  the same, every word with factors, N is the word (0)         Moses with several output factors
scored     ``id ||| text ||| number``                                   Nematus, GroundHog
fairseq    ``H-id TAB score TAB text`` among others                     fairseq-generate, fairseq-interactive
lines:N    N lines of text for each sentence                            JoeyNMT, OpenNMT-py
========== ============================================================ ================================================

All but the last are known by their first lines, and all are read into the style of Moses. The number of ``scored``
becomes the feature ``Score0`` and the total (minus it, where the sum of the first numbers is above 0: costs). The
score of fairseq, a logarithm to base 2 divided by the length, becomes the feature ``FairseqNorm0`` and the total, in
natural logarithms; its id is the line of the input, and sentences come in any order.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import BLANKS, SEPARATOR, look_factored
from smt_bridge.nbest.entry import NbestEntry, OriginalLine, is_usable, rounded
from smt_bridge.nbest.moses import clean_words, is_row_of_numbers, number_of, parse_entry, parse_id

SCORE = "Score0"


def numbered_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1, without blank ones, which Moses' tools pass over."""
    return ((number, line) for number, line in enumerate(lines, start=1) if line not in (b"", b"\r"))


def read_scored_entries(lines: Iterable[bytes], path: str, *, costs: bool) -> Iterator[NbestEntry]:
    """Lists whose third and last field is a number; ``costs`` are better the lower they are."""
    for number, line in numbered_lines(lines):
        entry = parse_entry(line, path=path, number=number)
        original = entry.original
        if original is None or len(original.fields) != 3 or entry.total is None or entry.features:
            raise FormatError(path, "expected 'id ||| text ||| score' as in the lines before", line=number)
        yield _with_score(entry, original, costs=costs)


def _with_score(entry: NbestEntry, original: OriginalLine, *, costs: bool) -> NbestEntry:
    """Put the number into a feature field of its own, as it is written."""
    written = original.fields[2].strip()  # of all that float() passes over
    if costs:
        written = written[1:] if written[:1] == b"-" else b"-" + written.lstrip(b"+")
    total = float(written)
    fields = (*original.fields[:2], b" " + SCORE.encode() + b"= " + written + b" ", b" " + written)
    original = original._replace(fields=fields, feature_place=2, total_place=3, features=1, total=total)
    return entry._replace(features={SCORE: (total,)}, total=total, original=original)


def read_line_entries(lines: Iterable[bytes], path: str, *, size: int) -> Iterator[NbestEntry]:
    """``size`` lines of text for each sentence; raises FormatError where the last sentence has fewer."""
    number = 0
    for number, line in enumerate(lines, start=1):
        yield _bare((number - 1) // size, line, path, number)
    if number % size:
        left = counted(number, "line, which is", "lines, which are")
        problem = f"ends after {left} no lists of {size}; is this the number of hypotheses?"
        raise FormatError(path, problem, line=number)


def _bare(sentence: int, text: bytes, path: str, number: int) -> NbestEntry:
    words = text.removesuffix(b"\r").strip(BLANKS)
    if SEPARATOR in words:
        raise FormatError(path, "the text holds '|||', which separates fields in the output", line=number)
    return NbestEntry(sentence, words, {}, None, number)


NORMALISED = "FairseqNorm0"
MARK = re.compile(rb"H-([0-9]{1,15})(?:_[0-9]+)?\t(.*)", re.DOTALL)
_TO_NATURAL = log(2.0)


def read_fairseq_entries(lines: Iterable[bytes], path: str) -> Iterator[NbestEntry]:
    """Yield the hypotheses in the order of the file; raises FormatError, naming the line."""
    for number, line in enumerate(lines, start=1):
        found = MARK.fullmatch(line.removesuffix(b"\r"))
        if found is None:
            continue
        score, tab, text = found[2].partition(b"\t")
        if not tab:
            raise FormatError(path, "expected 'H-id', the score and the hypothesis between tabs", line=number)
        base_2 = number_of(score)
        if base_2 is None or not is_usable(base_2):
            shown = score.decode("utf-8", "replace")[:40]
            raise FormatError(path, f"expected a finite number but found '{shown}'", line=number)
        total = rounded(base_2 * _TO_NATURAL)
        yield _bare(int(found[1]), text, path, number)._replace(features={NORMALISED: (total,)}, total=total)


AUTO = "auto"
_HEAD = 500  # lines looked at
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
        for number, line in numbered_lines(lines):
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
    if any(map(MARK.fullmatch, head)):
        return "fairseq"
    if any(SEPARATOR in line for line in head):
        return _detect_moses(head)
    raise FormatError(
        path,
        "is no n-best list known by its first lines: expected 'id ||| text ||| ...' with a whole number from 0 as id,"
        " or fairseq's H- lines; for N lines of text a sentence give --nbest-format lines:N",
        line=1,
    )


def _detect_moses(head: Sequence[bytes]) -> str:
    rows = [line.removesuffix(b"\r").split(SEPARATOR) for line in head]
    if all(len(row) == 3 and is_row_of_numbers(row[2], size=1) for row in rows):
        return "scored"
    texts = [row[1] for row in rows if len(row) > 1 and row[1].strip(b" \t")]
    return "factors" if look_factored([clean_words(text) for text in texts]) else "moses"


def _are_costs(head: Sequence[bytes]) -> bool:
    """Costs are above zero, log-probabilities below: most, since one is rounded and another has a reward for length."""
    fields = [line.rpartition(SEPARATOR)[2].strip(b" \t\r") for line in head]
    return sum(float(field) for field in fields if is_row_of_numbers(field, size=1)) > 0


def _moses_entries(lines: Lines, path: str, *, factor: int | None = None) -> Iterator[NbestEntry]:
    for number, line in numbered_lines(lines):
        yield parse_entry(line, path=path, number=number, factor=factor)


_WITH_BARS = ("moses", "factors", "scored")
_SIMPLE: dict[str, Reader] = {"moses": _moses_entries, "fairseq": read_fairseq_entries}
_NAMES = (*_WITH_BARS, "fairseq")
