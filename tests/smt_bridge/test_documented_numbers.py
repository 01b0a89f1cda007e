"""Numbers that the documentation names."""

from __future__ import annotations

from pathlib import Path

import pytest

from smt_bridge.hybrid import translate
from smt_bridge.lists import add
from smt_bridge.nbest import checks
from smt_bridge.serving import moses_queue
from smt_bridge.tables import table
from smt_bridge.tuning import held_out, loop_folder, pro
from smt_bridge.tuning.options import TuningOptions

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "words", "value", "expected"),
    [
        ("lists", "5,000 pairs a sentence, the 50 farthest apart kept", (pro.SAMPLED, pro.KEPT), (5000, 50)),
        ("lists", "95 % of 1,000 bootstrap samples", (held_out._SURE, held_out._SAMPLES), (0.95, 1000)),
        ("lists", "of the first 2,000 lists", checks.MOST_LOOKED_AT, 2000),
        ("lists", "complete rounds and each 100 decoded sentences stay", loop_folder._PART, 100),
        ("hybrid", "up to 100; where lists are made, always 100", (translate.WINDOW, add.WINDOW), (100, 100)),
        ("long-jobs", "of a table are about 20,000 lines", table.WINDOW, 20_000),
        ("hybrid", "after ten seconds", moses_queue.REST, 10.0),
        ("hybrid", "the old one ends after a minute without requests", moses_queue._LINGER, 60.0),
        ("hybrid", "Moses has two sentences a thread", moses_queue._AHEAD, 2),
    ],
)
def test_numbers_are_those_of_the_documentation(page: str, words: str, value: object, expected: object) -> None:
    assert words in " ".join((DOCS / f"{page}.md").read_text().split())
    assert value == expected


def test_keys_of_tuner_have_their_documented_defaults() -> None:
    mert, mira = {"runs": 3, "seed": 1, "restarts": 20, "folds": None}, {"passes": 60, "c": 0.01, "decay": 0.999}
    assert TuningOptions().model_dump() == {"tuner": "mert", "features": None, **mert, **mira}
