"""Maps as inline SVG: a dot for every point, its text as a title, and labels where there is room.

On a narrow screen a drawing shrinks and its labels with it; there labels are larger, and those for which there is room
at that size (``major``) stay, the others (``minor``) go. The classes are those of the page's style.

Shapes: N points.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.report.page import text

SIDE = 640
_MARGIN = 14
_LABELS = 60
_WIDE, _NARROW = 12, 21  # sizes of labels, as the style has them
_LONGEST = 40  # characters of a label
_LETTER, _BROAD = 0.56, 1.0  # of the size of a label, wide: letters, and those of Chinese, Japanese and Korean
_APART = 7  # a label from its point


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def scatter(
    texts: Sequence[str],
    places_N2: npt.NDArray[np.float64],
    *,
    title: str,
    marked: Iterable[str] = (),
    most_labels: int = _LABELS,
) -> str:
    """The map; places are between 0 and 1. ``marked`` texts are labelled first, then the others in their order."""
    inner = SIDE - 2 * _MARGIN
    points = [(_MARGIN + x * inner, _MARGIN + (1.0 - y) * inner) for x, y in places_N2.tolist()]
    height = max((y for _, y in points), default=0.0) + _MARGIN
    first = min((y for _, y in points), default=0.0) - _MARGIN
    special = frozenset(marked)
    order = sorted(range(len(texts)), key=lambda place: texts[place] not in special)
    dots = [
        f'<circle class="{"bad" if texts[place] in special else "second"}" cx="{points[place][0]:.1f}"'
        f' cy="{points[place][1]:.1f}" r="{5 if texts[place] in special else 3}"><title>{text(texts[place])}</title>'
        "</circle>"
        for place in reversed(order)
    ]
    labels = _labels([(texts[place], *points[place]) for place in order], most_labels)
    return (
        f'<svg class="map" role="img" viewBox="0 {first:.0f} {SIDE} {height - first:.0f}" width="{SIDE}"'
        f' aria-label="{text(title)}">{"".join(dots)}{"".join(labels)}</svg>'
    )


class _Label(NamedTuple):
    """A text beside its point: to the right of it, or, where that is beyond the drawing, to the left."""

    shown: str
    x: float
    y: float
    size: int

    @property
    def width(self) -> float:
        letters = (unicodedata.east_asian_width(letter) for letter in self.shown)
        return self.size * sum(_BROAD if kind in "WF" else _LETTER for kind in letters)

    @property
    def is_left(self) -> bool:
        return self.x + _APART + self.width > SIDE

    @property
    def box(self) -> _Box:
        left = self.x - _APART - self.width if self.is_left else self.x + _APART
        return _Box(left, self.y - self.size * 0.6, left + self.width, self.y + self.size * 0.6)

    def svg(self, kind: str) -> str:
        x, anchor = (self.x - _APART, ' text-anchor="end"') if self.is_left else (self.x + _APART, "")
        place = f'x="{x:.1f}" y="{self.y:.1f}" dominant-baseline="central"'
        return f'<text class="{kind}" {place}{anchor}>{text(self.shown)}</text>'


def _labels(points: Sequence[tuple[str, float, float]], most: int) -> list[str]:
    """Labels that do not cover one another: first those for narrow screens, then, smaller, those for wide ones."""
    taken: list[_Box] = []
    found: dict[int, str] = {}
    for kind, size, number in (("major", _NARROW, most // 3), ("minor", _WIDE, most)):
        for place, (shown, x, y) in enumerate(points):
            if len(found) >= number:
                break
            label = _Label(shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…", x, y, size)
            fits = label.box.left >= 0 and not any(label.box.touches(other) for other in taken)
            if place not in found and fits:
                taken.append(label.box)
                found[place] = label.svg(kind)
    return list(found.values())
