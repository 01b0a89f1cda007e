"""The sum over the phrase pairs used: equal to the table's column, and only from lists that tell the pairs."""

from __future__ import annotations

import gzip
import math
from itertools import islice
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from smt_bridge.errors import BridgeError, FormatError, WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.base import AdaptedFeature, Candidates
from smt_bridge.features.neural import PhraseSum
from smt_bridge.nbest.entry import NbestEntry, rounded, with_columns
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.moses import parse_entry, phrase_pairs
from smt_bridge.tables.scoring import Scorers, rescore_window
from smt_bridge.tables.table import Window
from tests.fakes import LengthPairScorer, TablePairScorer

SHARED = Path(__file__).parents[4] / "shared" / "moses" / "en-fr"
SOURCE = "a man in a hat ."
LINE = b"0 ||| Un homme |0-1| avec un chapeau |2-4| . |5-5|  ||| LM0= -1 ||| -2"
PAIRS = [("a man", "Un homme"), ("in a hat", "avec un chapeau"), (".", ".")]


def entry(line: bytes, **options: int) -> NbestEntry:
    return parse_entry(line, path="list", number=7, **options)


def test_the_pairs_are_those_of_the_marks() -> None:
    assert phrase_pairs(SOURCE, entry(LINE)) == PAIRS
    assert phrase_pairs(SOURCE, entry(LINE.replace(b"|0-1|", b"|0-1,wa=0-0 1-1,total=-1.5|"))) == PAIRS
    assert phrase_pairs("a", entry(b"0 ||| |0-0| ||| LM0= -1 ||| -2")) == [("a", "")]
    assert phrase_pairs("", entry(b"0 |||  ||| LM0= -1 ||| -2")) == []
    assert phrase_pairs("a b", entry(b"0 ||| x\x0cy |0-0| z |1-1| ||| LM0= -1")) == [("a", "x\x0cy"), ("b", "z")]


def test_factors_are_those_of_the_words() -> None:
    line = b"0 ||| Un|D homme|N |0-1| .|P |2-2| ||| LM0= -1 ||| -2"
    assert phrase_pairs("a man .", entry(line, factor=1)) == [("a man", "D N"), (".", "P")]


def test_the_sum_is_that_of_the_tables_column() -> None:
    scores = {pair: -1.5 - 2.25 * place for place, pair in enumerate(PAIRS)} | {("in a hat", "avec un chapeau"): -400.0}
    content = "\n".join(f"{source} ||| {target} ||| 0.5" for source, target in PAIRS).encode()
    table = rescore_window(Window("table", 1, 1, content), Scorers(TablePairScorer(scores))).content.decode()
    column = sum(math.log(float(line.split()[-1])) for line in table.splitlines())
    scorer = TablePairScorer(scores)
    (found,) = annotate([entry(LINE)], [PhraseSum(scorer)], [SOURCE], path="list")
    assert found.features["NMTphrases0"] == (rounded(column),)
    assert len(scorer.scored) == 3


def test_the_reverse_asks_for_the_other_direction() -> None:
    scores = {(target, source): -2.0 for source, target in PAIRS} | {(".", "."): 1e-6}  # 1, but for rounding
    feature = PhraseSum(TablePairScorer(scores), "reverse")
    (found,) = annotate([entry(LINE)], [AdaptedFeature(feature, names=("X0",))], [SOURCE], path="list")
    assert found.features["X0"] == (-4.0,)


@pytest.mark.parametrize("bad", [0.5, math.inf, -math.inf, math.nan])
def test_what_is_no_probability_is_refused_with_its_pair(bad: float) -> None:
    feature = PhraseSum(TablePairScorer(dict.fromkeys(PAIRS, -1.0) | {PAIRS[2]: bad}))
    with pytest.raises(BridgeError, match=r"log-probability .* for `\. \|\|\| \.`"):
        list(annotate([entry(LINE)], [feature], [SOURCE], path="list"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (LINE.replace(b" |0-1|", b"").replace(b" |2-4|", b"").replace(b" |5-5|", b""), "list:7: has no marks"),
        (LINE.replace(b" |5-5|", b""), "list:7: has words behind the last mark"),
        (LINE.replace(b"|5-5|", b"|5-6|"), r"list:7: the mark \|5-6\| is not of a source of 6 words"),
        (LINE.replace(b"|5-5|", b"|5-4|"), r"list:7: the mark \|5-4\|"),
    ],
)
def test_lists_that_do_not_tell_the_pairs_are_refused(line: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        list(annotate([entry(line)], [PhraseSum(LengthPairScorer())], [SOURCE], path="list"))


def test_pairs_must_be_told() -> None:
    remedy = "have Moses write the list with -report-segmentation"
    with pytest.raises(WiringError, match=f"^NMTphrases0 needs the phrase pairs of every hypothesis; {remedy}$"):
        PhraseSum(LengthPairScorer()).compute([Candidates("a", ["b"])])
    signature = "feature:phrases|direction:reverse|fake:length|tok:none|floor:1e-43"
    assert PhraseSum(LengthPairScorer(), "reverse").signature == signature


@pytest.mark.skipif(not SHARED.exists(), reason="no lists of Moses here")
def test_lists_of_moses_are_made_of_pairs_of_its_table() -> None:
    with gzip.open(SHARED / "phrase-table.gz", "rt", encoding="utf-8") as stream:
        table = {tuple(line.split(" ||| ", 2)[:2]) for line in stream}
    with gzip.open(SHARED.parents[1] / "data" / "multi30k" / "val.tok.en.gz", "rt", encoding="utf-8") as stream:
        sources = stream.read().splitlines()
    known = total = 0
    for one in islice(read_entries(str(SHARED / "val.nbest100.segmented.gz")), 2000):
        pairs = phrase_pairs(sources[one.sentence], one)
        assert " ".join(pair.target for pair in pairs if pair.target) == one.text
        assert sorted(" ".join(pair.source for pair in pairs).split()) == sorted(sources[one.sentence].split())
        known += sum(pair in table for pair in pairs)
        total += len(pairs)
    assert known / total > 0.95  # the others are words that Moses copied


def test_lines_stay_but_for_the_column() -> None:
    (found,) = annotate([entry(LINE)], [PhraseSum(LengthPairScorer())], [SOURCE], path="list")
    assert found == with_columns(entry(LINE), ["NMTphrases0"], found.features["NMTphrases0"])
    assert isinstance(SentencePair(*PAIRS[0]), SentencePair)
