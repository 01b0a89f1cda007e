"""Whatever a text of a page holds, it is text."""

from __future__ import annotations

import numpy as np

from smt_bridge.report import page

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
