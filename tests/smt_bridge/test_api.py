"""Options of the Python interface, one by one, on files of a few lines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import smt_bridge
from smt_bridge.nbest.entry import NbestList
from tests.fakes import TablePairScorer

LIST = "0 ||| it &apos;s you ||| A= 1 B= 0 ||| 0\n0 ||| it &apos;s me ||| A= 0 B= 1 ||| 0\n"


@pytest.fixture
def lists(tmp_path: Path) -> list[NbestList]:
    (tmp_path / "list").write_text(LIST)
    return smt_bridge.read_nbest(tmp_path / "list")


@pytest.mark.parametrize(
    ("line", "option", "texts"),
    [
        ("l &apos; ||| &bra; ||| 1 |||", {}, ("l &apos;", "&bra;")),
        ("l &apos; ||| &bra; ||| 1 |||", {"unescape": True}, ("l '", "[")),
        ("das|ART Haus|NN ||| the|DT house|NN ||| 1 |||", {"factor": "0,1"}, ("das Haus", "DT NN")),
    ],
)
def test_options_of_a_table(tmp_path: Path, line: str, option: dict[str, Any], texts: tuple[str, str]) -> None:
    (tmp_path / "table").write_text(f"{line}\n")
    smt_bridge.rescore_table(tmp_path / "table", tmp_path / "new", TablePairScorer({texts: math.log(0.5)}), **option)
    assert (tmp_path / "new").read_text() == line.replace(" 1 ", " 1 0.5 ") + "\n"
    options = {"scorer": "fake:table", "reverse_scorer": None, "unknown_count": False, "unescape": False}
    options |= {"factor": None, "dtype": None, "softmax": None} | option
    assert json.loads((tmp_path / "new.json").read_bytes())["options"] == options


def test_a_format_that_is_not_seen_is_named(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a\nb\nc\nd\n")
    found = smt_bridge.read_nbest(tmp_path / "lines", format="lines:2")
    assert [[entry.text for entry in one.entries] for one in found] == [["a", "b"], ["c", "d"]]


def test_lenient_weights_count_0_and_empty_lists_have_no_answer(lists: list[NbestList]) -> None:
    with pytest.raises(smt_bridge.WiringError, match="the weights"):
        smt_bridge.rerank(lists, {"B": [1.0]})
    found = smt_bridge.rerank([*lists, NbestList(1, [])], {"B": [1.0], "C": [1.0]}, lenient=True)
    assert [entry.text for entry in found] == ["it &apos;s me"]
    assert smt_bridge.rerank(lists, {"A": [1.0], "B": [1.0]})[0].text == "it &apos;s you"  # of equals the earliest


def test_tuning_begins_with_start_and_judges_plain_text(lists: list[NbestList]) -> None:
    options = smt_bridge.TuningOptions(runs=1, restarts=1)
    more: dict[str, Any] = {"options": options, "metric": "chrf", "detokenize": "en"}
    for good in (0.0, 1.0):
        report = smt_bridge.tune(lists, [["it's me"]], start={"A": [1.0 - good], "B": [good]}, **more)
        assert report.score == pytest.approx(100.0)
        assert (report.score_at_start == pytest.approx(100.0)) == (good == 1.0)
