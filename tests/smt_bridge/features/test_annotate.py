"""Columns reach their lines, sources are found by id, and mistakes name the line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from nmt_core.base.errors import NmtError
from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.base import AdaptedFeature, Candidates, Feature
from smt_bridge.features.lengths import WordCount
from smt_bridge.features.neural import PairFeature
from smt_bridge.nbest.entry import NbestEntry, format_entry
from smt_bridge.nbest.moses import parse_entry


class RecordingScorer:
    """Scores a pair by its lengths and remembers what it was asked."""

    signature = "lengths"

    def __init__(self) -> None:
        self.calls: list[list[SentencePair]] = []

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        self.calls.append(list(pairs))
        return [PairScore(-float(len(pair.source) * 100 + len(pair.target))) for pair in pairs]


def entries(*lines: bytes) -> list[NbestEntry]:
    return [parse_entry(line, path="list", number=number) for number, line in enumerate(lines, start=1)]


LINES = (
    b"0 ||| x y ||| A= 1 ||| 1",
    b"0 ||| x y  ||| A= 2 ||| 1",
    b"2 |||  ||| A= 3 ||| 1",
    b"0 ||| x y ||| A= 4 ||| 1",
)


@pytest.mark.parametrize("window", [1, 2, 100])
def test_columns_do_not_depend_on_the_window(window: int) -> None:
    features: list[Feature] = [PairFeature(RecordingScorer()), WordCount()]
    found = [
        format_entry(entry)
        for entry in annotate(entries(*LINES), features, ["s", "ss", "sss"], path="list", window=window)
    ]
    assert found == [
        b"0 ||| x y ||| A= 1 NMT0= -103 WordCount0= 2 ||| 1",
        b"0 ||| x y  ||| A= 2 NMT0= -103 WordCount0= 2 ||| 1",
        b"2 |||  ||| A= 3 NMT0= -300 WordCount0= 0 ||| 1",
        b"0 ||| x y ||| A= 4 NMT0= -103 WordCount0= 2 ||| 1",
    ]


def test_equal_pairs_of_a_window_are_scored_once() -> None:
    scorer = RecordingScorer()
    list(annotate(entries(*LINES), [PairFeature(scorer)], ["s", "ss", "sss"], path="list"))
    assert scorer.calls == [[SentencePair("s", "x y"), SentencePair("sss", "")]]


def test_id_beyond_the_source_names_line_and_counts() -> None:
    with pytest.raises(FormatError, match=r"list:3: id 2 .* 2 lines"):
        list(annotate(entries(*LINES), [WordCount()], ["s", "ss"], path="list"))


def test_column_that_is_there_already_is_refused() -> None:
    problem = r"^list:1: the list already has a feature A; was it added before\? Use --names for another name$"
    with pytest.raises(FormatError, match=problem):
        list(annotate(entries(*LINES), [AdaptedFeature(WordCount(), names=("A",))], ["s"] * 3, path="list"))


@pytest.mark.parametrize("names", [("NMT_0",), ("A", "A")])
def test_unusable_names_are_refused(names: tuple[str, ...]) -> None:
    features = [AdaptedFeature(WordCount(), names=(name,)) for name in names]
    with pytest.raises(WiringError):
        list(annotate(entries(*LINES), features, ["s"] * 3, path="list"))


class Careless:
    """A feature of somebody who did not count, or divided by nothing."""

    names = ("Careless0",)
    signature = "feature:careless"

    def __init__(self, table: list[list[tuple[float, ...]]]) -> None:
        self.table = table

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        return self.table


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([], "the feature Careless0 did not give one row per hypothesis"),
        ([[(1.0,)]], "the feature Careless0 did not give one row per hypothesis"),
        ([[(1.0, 2.0), (1.0, 2.0)]], "the feature Careless0 did not give one number for each of 1"),
        ([[(math.nan,), (1.0,)]], "list:1: the computed feature Careless0 is not a finite number"),
        ([[(1.0,), (-1e39,)]], "list:2: the computed feature Careless0 is -1e\\+39, but Moses"),
    ],
)
def test_careless_feature_is_named(table: list[list[tuple[float, ...]]], problem: str) -> None:
    with pytest.raises(NmtError, match=f"^{problem}"):
        list(annotate(entries(*LINES[:2]), [Careless(table)], ["s"], path="list"))


class Totals:
    """Gives back the totals it was given, -1 where there are none."""

    names = ("Given0",)
    signature = "feature:totals"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        return [[(total,) for total in group.totals or [-1.0] * len(group.hypotheses)] for group in groups]


def test_features_see_the_totals_where_every_line_has_one() -> None:
    lines = (b"0 ||| x ||| A= 1 ||| 5", b"0 ||| y ||| A= 1 ||| 6", b"1 ||| x ||| A= 1 ||| 7", b"1 ||| y ||| A= 1")
    found = annotate(entries(*lines), [Totals()], ["s", "t"], path="list")
    assert [entry.features["Given0"] for entry in found] == [(5,), (6,), (-1,), (-1,)]
