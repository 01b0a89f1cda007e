"""Small charts as inline SVG; every mark has a title that says its number.

On a narrow screen a drawing shrinks: there the text beside ``axes`` is larger. The names of ``bars`` leave no room for
that: these shrink less, and are scrolled. The classes are those of the page's style.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from smt_bridge.report.page import text

_WIDTH = 640
_LABELS = 190  # for the names of bars, at least
_LONGEST = 44  # characters of a name
_LETTER = 6.8  # a character, wide


class Bar(NamedTuple):
    """A bar from 0 to ``value``."""

    label: str
    value: float


class Line(NamedTuple):
    """Values at the positions of the axis; None leaves a gap."""

    label: str
    values: Sequence[float | None]


def bars(entries: Sequence[Bar], *, title: str, signed_colours: bool = False) -> str:
    """Horizontal bars, positive ones to the right."""
    if not entries:
        return ""
    low, high = min(0.0, *(bar.value for bar in entries)), max(0.0, *(bar.value for bar in entries))
    names = [_shortened(bar.label) for bar in entries]
    start = max(_LABELS, math.ceil(max(map(len, names)) * _LETTER))
    scale = (_WIDTH - start - 120) / ((high - low) or 1.0)
    zero = start + 10 - low * scale
    parts = []
    for row, (bar, name) in enumerate(zip(entries, names, strict=True)):
        top, end = 6 + 22 * row, zero + bar.value * scale
        kind = ("good" if bar.value >= 0 else "bad") if signed_colours else "second"
        number = f"{bar.value:.3g}"
        parts.append(
            f'<text x="{start}" y="{top + 12}" text-anchor="end">{text(name)}</text>'
            f'<rect class="{kind}" x="{min(zero, end):.1f}" y="{top}" width="{max(abs(end - zero), 0.5):.1f}"'
            f' height="15"><title>{text(bar.label)}: {number}</title></rect>'
        )
        parts.append(f'<text class="faint" x="{max(end, zero) + 5:.1f}" y="{top + 12}">{number}</text>')
    height = 22 * len(entries) + 8
    parts.append(f'<path class="rule" d="M{zero:.1f} 0V{height}"/>')
    return f'<div class="scroll">{_svg(_WIDTH, height, title, parts, kind="bars")}</div>'


def lines(axis: Sequence[str], first: Line, second: Line, *, title: str, unit: str) -> str:
    """Two lines over named positions."""
    known = [value for line in (first, second) for value in line.values if value is not None]
    if not known:
        return ""
    low, high = math.floor(min(known) / 5) * 5, math.ceil(max(known) / 5) * 5 or 5
    high = max(high, low + 5)
    left, top, bottom = 46, 14, 250
    step = (_WIDTH - left - 30) / max(len(axis) - 1, 1)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    parts = []
    for tick in np.linspace(low, high, 6):
        parts.append(
            f'<path class="rule" d="M{left} {y(tick):.1f}H{_WIDTH - 20}"/>'
            f'<text class="faint" x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for place, name in enumerate(axis):
        x = left + place * step
        parts.append(f'<text class="faint" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{text(name)}</text>')
    for kind, line in (("first", first), ("second", second)):
        points = [(left + place * step, value) for place, value in enumerate(line.values) if value is not None]
        path = "L".join(f"{x:.1f} {y(value):.1f}" for x, value in points)
        parts.append(f'<path class="line-{kind}" d="M{path}"/>')
        parts += [
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y(value):.1f}" r="4">'
            f"<title>{text(line.label)}: {value:.2f} {text(unit)}</title></circle>"
            for x, value in points
        ]
    for place, (kind, line) in enumerate((("first", first), ("second", second))):
        x = left + 10 + place * 220
        parts.append(f'<rect class="{kind}" x="{x}" y="{bottom + 30}" width="14" height="10"/>')
        parts.append(f'<text x="{x + 20}" y="{bottom + 40}">{text(line.label)}</text>')
    return _svg(_WIDTH, bottom + 50, title, parts, kind="axes")


def density(
    counts: npt.NDArray[np.int64],
    *,
    low: tuple[float, float],
    high: tuple[float, float],
    title: str,
    names: tuple[str, str],
) -> str:
    """A two-dimensional histogram (X, Y), the stronger in colour the more points fall into a cell."""
    columns, rows = counts.shape
    left, top, side = 60, 10, 420
    width, height = side / columns, side / rows
    most = math.log1p(int(counts.max())) or 1.0
    parts = [f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" class="rule"/>']
    for column, row in zip(*np.nonzero(counts), strict=True):
        count = int(counts[column, row])
        parts.append(
            f'<rect class="second" x="{left + column * width:.1f}" y="{top + side - (row + 1) * height:.1f}"'
            f' width="{width:.1f}" height="{height:.1f}" opacity="{0.12 + 0.88 * math.log1p(count) / most:.2f}">'
            f"<title>{counted(count, 'pair')}</title></rect>"
        )
    for part in np.linspace(0, 1, 5):
        x, y = left + part * side, top + side - part * side
        across, up = (low[axis] + part * (high[axis] - low[axis]) for axis in (0, 1))
        parts.append(f'<text class="faint" x="{x:.0f}" y="{top + side + 16}" text-anchor="middle">{across:.3g}</text>')
        parts.append(f'<text class="faint" x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{up:.3g}</text>')
    parts.append(f'<text x="{left + side / 2}" y="{top + side + 36}" text-anchor="middle">{text(names[0])}</text>')
    parts.append(
        f'<text transform="translate(14 {top + side / 2}) rotate(-90)" text-anchor="middle">{text(names[1])}</text>'
    )
    return _svg(left + side + 20, top + side + 46, title, parts, kind="axes")


def _shortened(name: str) -> str:
    """The end of a long name: the number of a weight stands there."""
    return name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]


def _svg(width: float, height: float, title: str, parts: Sequence[str], *, kind: str) -> str:
    return (
        f'<svg class="{kind}" role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' aria-label="{text(title)}">' + "".join(parts) + "</svg>"
    )
