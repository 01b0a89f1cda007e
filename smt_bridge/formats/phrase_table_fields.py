"""Lines of a phrase table cut into fields, many at once, where all are as programs write them.

Line by line it would take several times as long (``phrase_table`` does that where something is different here, to mend
or to name it). Shapes: N lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.fields import SEPARATOR
from smt_bridge.formats.plain_numbers import are_plain_numbers

_BAR, _NEWLINE = b"|\n"
_SEPARATORS = 3  # between the four fields that are told apart
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
    spans_2N = []
    for begin, block in _blocks(content):
        fields = None if not rules and b"]" in block and b"][" in block else _cut_block(block, scores)
        if fields is None:
            return None
        sources += fields.sources
        targets += fields.targets
        spans_2N.append(np.stack([fields.begins_N, fields.ends_N]) + begin)
    return Fields(sources, targets, *np.concatenate(spans_2N, axis=1))


def _blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Whole lines, and where each block of them begins."""
    begin = 0
    while (end := content.find(b"\n", begin + _AT_ONCE)) >= 0:
        yield begin, content[begin:end]
        begin = end + 1
    yield begin, content[begin:]


def _cut_block(content: bytes, scores: int) -> Fields | None:
    r"""In a copy of the lines, ``\n`` is written over the bars beside fields, and the copy is cut at all ``\n``.

    These bars are the first and the last of the first two separators, and the first of the third one, so that each line
    gives six pieces: the source, a bar, the target, a bar, the scores, and the rest.
    """
    octets = np.frombuffer(content, np.uint8)
    marked = octets == _NEWLINE
    bars = octets == _BAR
    marked[:-2] |= bars[:-2] & bars[1:-1] & bars[2:]
    places = np.flatnonzero(marked)  # of newlines, and of three bars in a row
    newlines_N = np.append(np.flatnonzero(octets[places] == _NEWLINE), len(places))
    firsts_N = np.append(0, newlines_N[:-1] + 1)
    if (newlines_N - firsts_N < _SEPARATORS).any():
        return None
    separators_3N = places[firsts_N + np.arange(_SEPARATORS)[:, None]]
    if (np.diff(separators_3N, axis=0) < len(SEPARATOR)).any():  # more than three bars in a row
        return None
    cut = octets.copy()
    cut[separators_3N] = _NEWLINE
    cut[separators_3N[:2] + 2] = _NEWLINE
    pieces = cut.tobytes().split(b"\n")
    if not are_plain_numbers(pieces[4::6], each=scores):
        return None
    return Fields(pieces[::6], pieces[2::6], separators_3N[1] + len(SEPARATOR), separators_3N[2])
