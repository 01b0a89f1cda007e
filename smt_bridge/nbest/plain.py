r"""Lists with little more than the words: they are read into the style of Moses.

::

    0 ||| the house ||| 4.52             Nematus and GroundHog: one number; costs (above 0) change their sign
    0   the house                        an id and a tab
    the house                            n lines for each sentence, as JoeyNMT and OpenNMT-py print them

The number of the first kind becomes the feature ``Score0`` and the total.

``fairseq-generate`` and ``fairseq-interactive`` print::

    S-4   the source                     T-4   the reference           tab-separated; the id is the line of the input
    H-4   -0.31   the hypothesis         in the tokens of the model; the score is a logarithm to base 2,
    D-4   -0.31   The hypothesis         divided by the length; the detokenised hypothesis
    P-4   -0.12 -0.50                    the score of every token, base 2, and
    A-4   0-0 1-1                        an alignment, where asked for

Sentences come in any order. A hypothesis gets the words of ``H`` and natural logarithms: ``Fairseq0`` is the sum of
``P``, ``FairseqNorm0`` and the total are the score. The alignment is kept behind the total; the other lines are not
kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import log
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import BLANKS, LARGEST, SEPARATOR, NbestEntry, OriginalLine, format_entry, rounded
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


SUM = "Fairseq0"
NORMALISED = "FairseqNorm0"
MARK = re.compile(rb"([A-Z])-([0-9]{1,15})(?:_[0-9]+)?\t(.*)", re.DOTALL)
_TO_NATURAL = log(2.0)


class _Hypothesis(NamedTuple):
    sentence: int
    words: bytes
    score: float
    line: int
    word_scores: tuple[float, ...] = ()
    alignment: bytes | None = None


def read_fairseq_entries(lines: Iterable[bytes], path: str) -> Iterator[NbestEntry]:
    """Yield the hypotheses in the order of the file; raises FormatError, naming the line."""
    current: _Hypothesis | None = None
    for number, line in enumerate(lines, start=1):
        found = MARK.fullmatch(line.removesuffix(b"\r"))
        if found is None:
            continue
        kind, sentence, content = found[1], int(found[2]), found[3]
        if kind == b"H":
            if current is not None:
                yield _fairseq_entry(current)
            current = _begin(sentence, content, path, number)
        elif kind in (b"P", b"A"):
            if current is None or current.sentence != sentence:
                problem = f"{kind.decode()}-{sentence} does not follow its H-{sentence}; is the output of one process?"
                raise FormatError(path, problem, line=number)
            current = _continued(current, kind, content, path, number)
    if current is not None:
        yield _fairseq_entry(current)


def _begin(sentence: int, content: bytes, path: str, number: int) -> _Hypothesis:
    score, tab, words = content.partition(b"\t")
    if not tab:
        raise FormatError(path, "expected 'H-id', the score and the hypothesis between tabs", line=number)
    if SEPARATOR in words:
        raise FormatError(path, "the hypothesis holds '|||', which separates fields in the output", line=number)
    return _Hypothesis(sentence, words.strip(b" \t"), _numbers(score, path, number)[0], number)


def _continued(current: _Hypothesis, kind: bytes, content: bytes, path: str, number: int) -> _Hypothesis:
    if kind == b"A":
        return current._replace(alignment=content.strip(b" \t"))
    return current._replace(word_scores=_numbers(content, path, number))


def _numbers(field: bytes, path: str, number: int) -> tuple[float, ...]:
    try:
        values = tuple(float(token) for token in field.replace(b"\t", b" ").split(b" ") if token)
    except ValueError:
        values = ()
    if not values or not all(-LARGEST <= value <= LARGEST for value in values):
        shown = field.decode("utf-8", "replace")[:40]
        raise FormatError(path, f"expected finite numbers but found '{shown}'", line=number)
    return values


def _fairseq_entry(found: _Hypothesis) -> NbestEntry:
    features: dict[str, tuple[float, ...]] = {}
    if found.word_scores:
        features[SUM] = (rounded(sum(found.word_scores) * _TO_NATURAL),)
    total = rounded(found.score * _TO_NATURAL)
    features[NORMALISED] = (total,)
    entry = NbestEntry(found.sentence, found.words, features, total, found.line)
    if found.alignment is None:
        return entry
    fields = (*format_entry(entry).split(SEPARATOR), b" " + found.alignment)
    fields = (*fields[:3], fields[3] + b" ", fields[4])
    return entry._replace(original=OriginalLine(fields, 2, 3, len(features), total))
