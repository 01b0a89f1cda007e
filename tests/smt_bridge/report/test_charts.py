"""Charts have room for the names of what they show."""

from __future__ import annotations

import re

import pytest

from smt_bridge.report.page import Bar, bars

LETTER = 6.5  # pixels of a letter on average, at the size of the drawing


@pytest.mark.parametrize("length", [5, 35, 90])
def test_names_of_bars_are_inside_the_drawing_and_whole_in_the_title(length: int) -> None:
    name = "x" * (length - 6) + " 0.125"
    drawing = bars([Bar(name[-length:], 1.0), Bar("other", -2.0)], title="weights")
    shown = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end">([^<]*)</text>', drawing)
    assert len(shown) == 2
    for start, label in shown:
        assert int(start) >= LETTER * len(label)
    assert shown[0][1].endswith("0.125"[-length:])
    assert f"<title>{name[-length:]}: 1</title>" in drawing
    rightmost = max(float(x) for x in re.findall(r'class="faint" x="([\d.]+)"', drawing))
    assert rightmost <= 640 - 60
