r"""Lists with little more than the words: they are read into the style of Moses.

::

    0 ||| the house ||| 4.52             Nematus and GroundHog: one number; costs (above 0) change their sign
    0   the house                        an id and a tab
    the house                            n lines for each sentence, as JoeyNMT and OpenNMT-py print them

The number of the first kind becomes the feature ``Score0`` and the total.

``fairseq-generate`` and ``fairseq-interactive`` print among other lines::

    H-4   -0.31   the hypothesis         tab-separated; the id is the line of the input, sentences come in any order

The score, a logarithm to base 2 divided by the length, becomes the feature ``FairseqNorm0`` and the total, in natural
logarithms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import log, nan

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import BLANKS, SEPARATOR, NbestEntry, OriginalLine, is_usable, rounded
from smt_bridge.nbest.moses import parse_entry, parse_id

SCORE = "Score0"


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1, without blank ones, which Moses' tools pass over."""
    return ((number, line) for number, line in enumerate(lines, start=1) if line not in (b"", b"\r"))


def read_scored_entries(lines: Iterable[bytes], path: str, *, costs: bool) -> Iterator[NbestEntry]:
    """Lists whose third and last field is a number; ``costs`` are better the lower they are."""
    for number, line in numbered(lines):
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


def read_tabbed_entries(lines: Iterable[bytes], path: str) -> Iterator[NbestEntry]:
    """``id TAB text``."""
    for number, line in numbered(lines):
        identifier, tab, text = line.partition(b"\t")
        if not tab:
            raise FormatError(path, "expected an id, a tab and the text, but there is no tab", line=number)
        yield _bare(parse_id(identifier, path=path, number=number), text, path, number)


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
        total = rounded(_number(score, path, number) * _TO_NATURAL)
        yield _bare(int(found[1]), text, path, number)._replace(features={NORMALISED: (total,)}, total=total)


def _number(field: bytes, path: str, number: int) -> float:
    try:
        value = float(field)
    except ValueError:
        value = nan
    if not is_usable(value):
        shown = field.decode("utf-8", "replace")[:40]
        raise FormatError(path, f"expected a finite number but found '{shown}'", line=number)
    return value
