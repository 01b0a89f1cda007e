"""Drawings of attention have room for their words."""

from __future__ import annotations

import math
import re

import pytest

from nmt_core.inference.output.attention_svg import attention_svg

NARROWEST = 6.5  # pixels of a small letter on average, at the size of the drawing
ACROSS = re.compile(r"translate\((\d+) (\d+)\) rotate\(-60\)")
DOWN = re.compile(r'x="(\d+)" y="\d+" text-anchor="end"')


@pytest.mark.parametrize(("word", "letter"), [("k" * 40, NARROWEST), ("汽" * 20, 12.0), ("W" * 20, 11.8)])
def test_long_words_at_the_end_are_inside_the_drawing(word: str, letter: float) -> None:
    drawing = attention_svg([[0.5, 0.5]], ["a", word], [word])
    width = int(drawing.partition('width="')[2].partition('"')[0])
    x, y = map(int, ACROSS.findall(drawing)[1])
    length = letter * len(word)
    assert x + length * math.cos(math.radians(60)) <= width
    assert y - length * math.sin(math.radians(60)) >= 0
    assert int(DOWN.findall(drawing)[0]) >= length


def test_cells_have_titles_and_the_faintest_are_left_out() -> None:
    """A weight of 0.03 is drawn, so that a row of a distribution has 33 cells at most."""
    drawing = attention_svg([[0.03, 0.0299], [0.125, 1.0]], ["<a>", 'b"'], ["&", "d\x07"], title="a < b")
    assert re.findall("<title>(.*?)</title>", drawing) == [
        *("&amp; / &lt;a&gt;: 0.03", "d\\x07 / &lt;a&gt;: 0.12", "d\\x07 / b&quot;: 1.00")
    ]
    assert re.findall(r'opacity="([0-9.]+)"', drawing) == ["0.03", "0.03", "0.03", "0.12", "1.00"]  # two of whole rows
    assert 'aria-label="a &lt; b"' in drawing and "xmlns" not in drawing
    assert attention_svg([], [], [], namespace=True).startswith('<svg xmlns="http://www.w3.org/2000/svg" role="img"')


def test_short_words_leave_the_width_to_the_cells() -> None:
    narrow, wide = (attention_svg([[1.0] * number], ["a"] * number, ["b"]) for number in (3, 13))
    first, second = (int(one.partition('width="')[2].partition('"')[0]) for one in (narrow, wide))
    assert second - first == 220
