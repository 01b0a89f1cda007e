"""Attention as a drawing: an SVG that needs nothing else, for pages, notebooks and files.

Text takes the colour that surrounds the drawing, so that it can be read in light and dark; classes let a page
choose its own colours. A cell has a title that says its words and its weight; the faintest, of which long sentences
have most, are left out, so that a row has 33 at most.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence

from nmt_core.base.messages import show

_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_CELL = 22
_LETTER = 8.0  # a character, wide, but for capitals and those of Chinese, Japanese and Korean
_BROAD = 12.0
_SLANT = math.radians(60)  # of the words across
_COLOUR = "#1565c0"
_FAINTEST = 0.03  # weight that is drawn; a row is as dark everywhere, so that it can be followed


def attention_svg(
    weights: Sequence[Sequence[float]],
    across: Sequence[str],
    down: Sequence[str],
    *,
    title: str = "attention",
    namespace: bool = False,
) -> str:
    """One row for each target word (``down``), one column for each source word (``across``).

    A file of its own needs a ``namespace``; in a page there is none.
    """
    left = 12 + math.ceil(max(map(_length, down), default=0))
    top = 12 + math.ceil(math.sin(_SLANT) * max(map(_length, across), default=0))
    ends = (_CELL * column + 21 + math.cos(_SLANT) * _length(word) for column, word in enumerate(across))
    width = left + max([_CELL * len(across), *map(math.ceil, ends)]) + 6
    height = top + _CELL * len(down) + 6
    words = [
        f'<text transform="translate({left + column * _CELL + 15} {top - 5}) rotate(-60)">{_text(word)}</text>'
        for column, word in enumerate(across)
    ]
    words += [
        f'<text x="{left - 6}" y="{top + row * _CELL + 15}" text-anchor="end">{_text(word)}</text>'
        for row, word in enumerate(down)
    ]
    cells = [
        f'<rect class="second" x="{left}" y="{top + row * _CELL}" width="{_CELL * len(across) - 1}"'
        f' height="{_CELL - 1}" opacity="{_FAINTEST}"/>'
        for row in range(len(down))
    ]
    cells += [
        f'<rect class="second" x="{left + column * _CELL}" y="{top + row * _CELL}" width="{_CELL - 1}"'
        f' height="{_CELL - 1}" opacity="{weight:.2f}">'
        f"<title>{_text(down[row])} / {_text(across[column])}: {weight:.2f}</title></rect>"
        for row, line in enumerate(weights)
        for column, weight in enumerate(line)
        if weight >= _FAINTEST
    ]
    return (
        f'<svg{_NAMESPACE if namespace else ""} role="img" viewBox="0 0 {width} {height}" width="{width}"'
        f' aria-label="{_text(title)}">'
        f'<g fill="currentColor" font-family="system-ui, sans-serif" font-size="12">{"".join(words)}</g>'
        f'<g fill="{_COLOUR}">{"".join(cells)}</g></svg>'
    )


def _length(word: str) -> float:
    """An upper bound, of what is shown."""
    return sum(_BROAD if _is_broad(letter) else _LETTER for letter in show(word))


def _is_broad(letter: str) -> bool:
    return letter.isupper() or unicodedata.east_asian_width(letter) in "WF"


def _text(value: str) -> str:
    return html.escape(show(value), quote=True)
