"""Lines of a phrase table cut into fields, many at once, where all are as programs write them.

Line by line it would take several times as long (``phrase_table`` does that where something is different here, to mend
or to name it). Shapes: N lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.moses_lines import SEPARATOR
from smt_bridge.tables.plain_numbers import are_plain_numbers

_BAR, _NEWLINE = b"|\n"
_SEPARATORS = 3  # between the four fields that are told apart
_EACH = np.arange(_SEPARATORS)[:, None]
_AT_ONCE = 1 << 17  # bytes: what is made of them stays in the processor's cache until it is used


class Fields(NamedTuple):
    """Sources and targets; the third fields begin and end at these places."""

    sources: list[bytes]
    targets: list[bytes]
    begins_N: npt.NDArray[np.int64]
    ends_N: npt.NDArray[np.int64]


def cut_fields(content: bytes, *, scores: int, rules: bool) -> Fields | None:
    r"""The fields of lines with ``\n`` between them; None where a line may be a rule and ``rules`` are not wanted.

    None, too, where a line has less than four fields or other than ``scores`` plain numbers in the third.
    """
    sources: list[bytes] = []
    targets: list[bytes] = []
    begins, ends = [], []
    for place, block in _blocks(content):
        fields = None if not rules and b"]" in block and b"][" in block else _cut_block(block, scores)
        if fields is None:
            return None
        sources += fields.sources
        targets += fields.targets
        begins.append(fields.begins_N + place)
        ends.append(fields.ends_N + place)
    return Fields(sources, targets, np.concatenate(begins), np.concatenate(ends))


def _blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    r"""Whole lines, each with its ``\n``, and where each block of them begins."""
    begin = 0
    while (end := content.find(b"\n", begin + _AT_ONCE)) >= 0:
        yield begin, content[begin : end + 1]
        begin = end + 1
    yield begin, content[begin:] + b"\n"


def _cut_block(content: bytes, scores: int) -> Fields | None:
    r"""In a copy of the lines, ``\n`` is written over the bars beside fields, and the copy is cut at all ``\n``.

    These bars are the first and the last of the first two separators, and the first of the third one, so that each line
    gives six pieces: the source, a bar, the target, a bar, the scores, and the rest.
    """
    octets = np.frombuffer(content, np.uint8)
    bars = octets == _BAR
    marked = octets == _NEWLINE
    marked[:-2] |= bars[:-2] & bars[1:-1] & bars[2:]
    places = marked.nonzero()[0]  # of newlines, and of three bars in a row
    newlines_N = (octets[places] == _NEWLINE).nonzero()[0]
    firsts_N = newlines_N + 1
    firsts_N[1:], firsts_N[0] = firsts_N[:-1], 0
    if (newlines_N - firsts_N).min() < _SEPARATORS:
        return None
    separators_3N = places[firsts_N + _EACH]
    if (separators_3N[1:] - separators_3N[:-1]).min() < len(SEPARATOR):  # more than three bars in a row
        return None
    cut = octets.copy()
    cut[separators_3N] = _NEWLINE
    cut[separators_3N[:2] + 2] = _NEWLINE
    pieces = cut.tobytes().split(b"\n")
    if not are_plain_numbers(pieces[4::6], each=scores):
        return None
    return Fields(pieces[:-1:6], pieces[2::6], separators_3N[1] + len(SEPARATOR), separators_3N[2])
