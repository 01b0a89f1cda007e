"""Charts have room for the names of what they show."""

from __future__ import annotations

import re

import numpy as np
import pytest

from smt_bridge.report import page
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


TEXT = "<b a=\"'>&"
ESCAPED = "&lt;b a=&quot;&#x27;&gt;&amp;"


def test_texts_of_all_parts_are_escaped() -> None:
    counts = np.ones((2, 2), dtype=np.int64)
    parts = {
        page.page(TEXT, TEXT, ()): 3,
        page.section(TEXT, remark=TEXT): 2,
        page.table([TEXT], [[TEXT]]): 2,
        page.pairs([(TEXT, "")]): 1,
        page.listed_signatures({TEXT: TEXT}): 2,
        page.bars([page.Bar(TEXT, 1.0, TEXT)], title=TEXT): 5,
        page.density(counts, low=(0, 0), high=(1, 1), title=TEXT, names=(TEXT, TEXT)): 3,
    }
    for part, times in parts.items():
        assert (part.count(ESCAPED), part.count("<b a")) == (times, 0), part
