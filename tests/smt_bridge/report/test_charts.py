"""Charts have room for the names of what they show."""

from __future__ import annotations

import re

import numpy as np
import pytest

from smt_bridge.report import page
from smt_bridge.report.feature_names import explained
from smt_bridge.report.page import Bar, bars
from smt_bridge.report.reranking import _weights

LETTER = 6.5  # pixels of a letter on average, at the size of the drawing


@pytest.mark.parametrize("length", [5, 35, 90])
def test_names_of_bars_are_inside_the_drawing_and_whole_in_the_title(length: int) -> None:
    name = "x" * (length - 6) + " 0.125"
    drawing = bars([Bar(name[-length:], 1.0), Bar("other", -2.0)], title="weights")
    shown = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end">([^<]*)</text>', drawing)
    assert [len(label) for _, label in shown] == [min(length, 44), 5]
    for start, label in shown:
        assert int(start) >= LETTER * len(label)
    assert shown[0][1].endswith("0.125"[-length:])
    assert f"<title>{name[-length:]}: 1</title>" in drawing
    rightmost = max(float(x) for x in re.findall(r'class="faint" x="([\d.]+)"', drawing))
    assert rightmost <= 640 - 60


def test_a_density_says_its_numbers_and_its_borders() -> None:
    counts = np.array([[1, 0], [0, 3]])
    drawing = page.density(counts, low=(-12, -30), high=(0, 0), title="t", names=("x", "y"))
    assert re.findall(r"<title>([^<]*)</title>", drawing) == ["1 pair", "3 pairs"]
    shown = re.findall(r'<text class="faint"[^>]*>([^<]*)</text>', drawing)
    assert (shown[::2], shown[1::2]) == (["-12", "-9", "-6", "-3", "0"], ["-30", "-22.5", "-15", "-7.5", "0"])


def test_every_value_of_a_feature_has_its_weight() -> None:
    drawing = _weights([], {"T": (1.0, 2.5), "A": (0.5,)})
    assert re.findall(r"<title>([^<]*)</title>", drawing) == ["T.0  1: 0", "T.1  2.5: 0", "A  0.5: 0"]


def test_numbers_of_tables_have_two_decimals_where_they_are_not_whole() -> None:
    cells = re.findall(r"<td([^>]*)>([^<]*)</td>", page.table(["a"], [[1234, 1234.567, "1234"]]))
    assert cells == [(' class="number"', "1,234"), (' class="number"', "1,234.57"), ("", "1234")]


def test_known_features_are_explained() -> None:
    assert {name: explained(name) for name in KNOWN} == KNOWN and explained("MyLM0") == ""


KNOWN = {
    "LexicalReordering0": "Moses: how likely each phrase stands before, beside or apart from its neighbours",
    "Distortion0": "Moses: minus the source words that were jumped over",
    "UnknownWordPenalty0": "Moses: words that no phrase translates",
    "WordPenalty0": "Moses: minus the number of words",
    "PhrasePenalty0": "Moses: the number of phrases",
    "TranslationModel0": "Moses: logarithms of the scores of its phrases",
    "LM0": "log10 or ln p by Moses' language model",
    "KENLM0": "ln p by the language model of --lm",
    "WordCount0": "the number of words",
    "NMTreverse0": "ln p(source | translation) by the reverse model",
    "NMT0": "ln p(translation | source) by the neural model",
    "TotalMoses0": "the total of this system's own search",
    "InMoses0": "1 where this system's list has the translation",
    "FirstMoses0": "1 for this system's own choice",
    "RankMoses0": "1 / its place in this system's list, 0 where it is not there",
}


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
    assert page.text("a\x1b\x07") == "a\\x1b\\x07"
