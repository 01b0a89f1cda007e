"""Columns reach their lines, sources are found by id, and mistakes name the line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nmt_core.interfaces import PairScore, SentencePair
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.interface import Candidates, Feature
from smt_bridge.features.lengths import WordCount
from smt_bridge.features.pair_score import PairScoreFeature
from smt_bridge.formats.nbest import NbestEntry, format_entry, parse_entry


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
    features: list[Feature] = [PairScoreFeature(RecordingScorer(), "NMT0"), WordCount()]
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
    list(annotate(entries(*LINES), [PairScoreFeature(scorer, "NMT0")], ["s", "ss", "sss"], path="list"))
    assert scorer.calls == [[SentencePair("s", "x y"), SentencePair("sss", "")]]


def test_reverse_score_swaps_the_sides() -> None:
    scorer = RecordingScorer()
    PairScoreFeature(scorer, "R", reverse=True).compute([Candidates("s", ["x y"])])
    assert scorer.calls == [[SentencePair("x y", "s")]]


def test_id_beyond_the_source_names_line_and_counts() -> None:
    with pytest.raises(FormatError, match=r"list:3: id 2 .* 2 lines"):
        list(annotate(entries(*LINES), [WordCount()], ["s", "ss"], path="list"))


def test_column_that_is_there_already_is_refused() -> None:
    with pytest.raises(FormatError, match=r"list:1: .*feature A;"):
        list(annotate(entries(*LINES), [WordCount("A")], ["s"] * 3, path="list"))


@pytest.mark.parametrize("names", [("NMT_0",), ("A", "A")])
def test_unusable_names_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(WiringError):
        list(annotate(entries(*LINES), [WordCount(name) for name in names], ["s"] * 3, path="list"))
