"""HTML pages that need nothing but themselves: no network, no scripts, readable in light and dark, and on paper.

Charts are inline SVG; every mark has a title that says its number. On a narrow screen a drawing shrinks: there the text
beside ``axes`` is larger. The names of ``bars`` leave no room for that: these shrink less, and are scrolled.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted, show

_STYLE = """
:root { --paper: #ffffff; --ink: #1d2733; --faint: #66727f; --rule: #d7dde3; --panel: #f4f6f8; --first: #8595a6;
  --second: #1565c0; --good: #1b7f4b; --bad: #b3372f; --mark: #ffe8a3; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e3e8ee; --faint: #98a4b1; --rule: #343c46;
  --panel: #1d232a; --first: #76869a; --second: #6fb1ff; --good: #5cc48d; --bad: #f0837a; --mark: #5b4a13; } }
* { box-sizing: border-box; }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 68rem; overflow-wrap: break-word; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; } p { margin: .4rem 0; max-width: 46rem; }
.faint, caption, .signature { color: var(--faint); } .signature { font: .78rem/1.4 ui-monospace, monospace; word-break: break-all; }
.scroll { overflow-x: auto; } .full svg { max-width: none; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; } svg { display: block; height: auto; max-width: 100%; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .faint { fill: var(--faint); }
svg .rule { stroke: var(--rule); } .first { fill: var(--first); } .second { fill: var(--second); }
.good { fill: var(--good); } .bad { fill: var(--bad); }
svg.map text { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; } svg.map circle { opacity: .55; } svg.map .bad { opacity: 1; }
details { border: 1px solid var(--rule); border-radius: 6px; margin: .5rem 0; padding: .5rem .8rem; }
details[open] { background: var(--panel); } summary { cursor: pointer; }
.gain { color: var(--good); font-weight: 600; } .loss { color: var(--bad); font-weight: 600; }
ins, del { background: var(--mark); text-decoration: none; border-radius: 3px; padding: 0 .15em; }
figure { margin: 0; max-width: 24rem; } figcaption { color: var(--faint); }
del { text-decoration: line-through; } .words span { border-radius: 3px; display: inline-block; margin: 0 .25em .25em 0;
  max-width: 100%; padding: 0 .3em; text-align: center; } .words small { color: var(--faint); display: block; font-size: .7rem; }
.pair { display: grid; gap: .2rem .8rem; grid-template-columns: max-content minmax(0, 1fr); } .pair dt { color: var(--faint); }
.pair dd { margin: 0; } .columns { display: flex; flex-wrap: wrap; gap: 1.5rem; }
@media (max-width: 36rem) { .pair { grid-template-columns: minmax(0, 1fr); } body { padding: 1rem .7rem 3rem; } }
@media (max-width: 36rem) { svg.map .major { font-size: 21px; } svg.map .minor { display: none; } }
@media (max-width: 36rem) { table { font-size: .9rem; } th, td { padding-right: .45rem; } }
@media (max-width: 36rem) { svg.axes text { font-size: 17px; } svg.bars { min-width: 32rem; } }
@media print { details { break-inside: avoid; } .scroll { overflow: visible; } .full svg { max-width: 100%; } body { max-width: none; } }
"""


def page(title: str, subtitle: str, sections: Iterable[str]) -> str:
    """A whole page; ``sections`` are HTML, the titles are text."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{text(title)}</h1>\n<p class="faint">{text(subtitle)}</p>\n'
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def text(value: object) -> str:
    """Anything as text that HTML leaves alone, also inside attributes; control characters are shown escaped."""
    return html.escape(show(value), quote=True)


def section(title: str, *parts: str, remark: str = "") -> str:
    """A heading, a sentence that says what is to be seen, and the parts (HTML)."""
    paragraph = f'<p class="faint">{text(remark)}</p>\n' if remark else ""
    return f"<section>\n<h2>{text(title)}</h2>\n{paragraph}" + "\n".join(parts) + "\n</section>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts and numbers; numbers stand right, with two decimals where they are not whole."""
    head = "".join(f"<th{_kind(column, head=True)}>{text(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{_shown(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def listed(items: Iterable[str]) -> str:
    """Items of a cell with dots between them, none of which begins a line."""
    return "\u00a0· ".join(items)


def pairs(entries: Iterable[tuple[str, str]]) -> str:
    """Names (text) with what they stand for (HTML)."""
    return '<dl class="pair">' + "".join(f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in entries) + "</dl>"


def listed_signatures(signatures: Mapping[str, str]) -> str:
    """Names of columns with their signatures."""
    return pairs((name, f'<span class="signature">{text(value)}</span>') for name, value in signatures.items())


def _kind(cell: object, *, head: bool = False) -> str:
    return ' class="number"' if isinstance(cell, int | float) and not head else ""


def _shown(cell: object) -> str:
    return text(f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell)


_WIDTH = 640
_LABELS = 190  # for the names of bars, at least
_LONGEST = 44  # characters of a name
_LETTER = 6.8  # a character, wide


class Bar(NamedTuple):
    """A bar from 0 to ``value``; ``about`` is shown where the pointer rests on it."""

    label: str
    value: float
    about: str = ""


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
        number = f"{bar.value + 0.0:.3g}"  # of -0.0 it is 0
        shown, about = f"{bar.label}: {number}", ""
        if bar.about:
            shown, about = f"{shown} ({bar.about})", f"<title>{text(bar.about)}</title>"
        parts.append(
            f'<text x="{start}" y="{top + 12}" text-anchor="end">{text(name)}{about}</text>'
            f'<rect class="{kind}" x="{min(zero, end):.1f}" y="{top}" width="{max(abs(end - zero), 0.5):.1f}"'
            f' height="15"><title>{text(shown)}</title></rect>'
        )
        parts.append(f'<text class="faint" x="{max(end, zero) + 5:.1f}" y="{top + 12}">{number}</text>')
    height = 22 * len(entries) + 8
    parts.append(f'<path class="rule" d="M{zero:.1f} 0V{height}"/>')
    return f'<div class="scroll">{_svg(_WIDTH, height, title, parts, kind="bars")}</div>'


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
