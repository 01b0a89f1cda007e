"""The limits of generated phrase pairs, with a generator and scorers that need no model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError, NmtError
from nmt_core.base.interfaces import PairScore
from scripts.experiments.cho2014.phrase_generation import Counts, Generation, Limits, generate_chunk
from scripts.experiments.cho2014.phrase_sources import Source, Sources, sources_of_table, sources_of_text
from smt_bridge.errors import WiringError
from tests.fakes import LengthPairScorer, TablePairScorer

LN = {share: math.log(share) for share in (0.5, 0.25, 0.2, 0.1, 0.01)}


class TableGenerator:
    """Looks every source up."""

    def __init__(self, targets: Mapping[str, list[str]]) -> None:
        self.targets = targets

    def generate(self, sources: Sequence[str]) -> list[list[str]]:
        return [self.targets[source] for source in sources]


def generated(targets: list[str], scores: dict[str, float | PairScore], *, source: str = "a b", **options) -> Counts:
    """The counts for one source, whose lines are checked to be ``options.pop("lines")``."""
    lines, in_table = options.pop("lines"), options.pop("in_table", ())
    reverse = options.pop("reverse", None)
    limits = {name: options.pop(name) for name in list(options) if name in Limits._fields}
    generation = Generation(
        TableGenerator({source: targets}),
        TablePairScorer({(source, target): score for target, score in scores.items()}),
        Limits(**limits),
        reverse=None if reverse is None else TablePairScorer({(one, source): score for one, score in reverse.items()}),
        **options,
    )
    block = Sources(1, 1, [Source(source.encode(), tuple(one.encode() for one in in_table))])
    content, counts = generate_chunk(block, generation)
    assert content.decode().splitlines() == [f"{source} ||| {line} |||" for line in lines]
    return counts


def test_a_reverse_scorer_of_the_wrong_direction_is_refused() -> None:
    """One that knows none of the words, neither of the sources nor of what was generated for them."""
    pairs = {f"s{number}": [f"t{number}"] for number in range(40)}
    block = Sources(1, 40, [Source(source.encode()) for source in pairs])
    turned = LengthPairScorer(unknown=frozenset([*pairs, *(target for (target,) in pairs.values())]))
    with pytest.raises(WiringError, match="does not know 80 of 80 words of both sides; it must be a model of target"):
        generate_chunk(block, Generation(TableGenerator(pairs), LengthPairScorer(), Limits(), reverse=turned))
    found = generate_chunk(
        block, Generation(TableGenerator(pairs), LengthPairScorer(), Limits(), reverse=LengthPairScorer())
    )
    assert found.counts.written == 40


def test_distinct_targets_come_out_best_first_with_what_the_scorer_says() -> None:
    scores = {"y": LN[0.25], "x": LN[0.5], "w": LN[0.25]}
    counts = generated(["y", "x", "y ", " w", "", " "], scores, lines=["x ||| 0.5", "w ||| 0.25", "y ||| 0.25"])
    assert counts == Counts(1, 1, generated=3, written=3, sources_written=1, log_prob=counts.log_prob)
    assert counts.log_prob == pytest.approx(LN[0.5] + 2 * LN[0.25])


def test_every_rule_takes_what_it_says_and_counts_it() -> None:
    scores: dict[str, float | PairScore] = {"x": LN[0.5], "y": LN[0.2], "z": LN[0.1], "w": LN[0.01]}
    assert generated(list(scores), scores, lines=["x ||| 0.5", "y ||| 0.2"], keep=2).beyond_keep == 2
    assert generated(list(scores), scores, lines=["x ||| 0.5", "y ||| 0.2"], minimum_share=0.3).below_share == 2
    # a pair of the table takes one of the places
    counts = generated(list(scores), scores, lines=["y ||| 0.2"], keep=2, in_table=("x",))
    assert (counts.in_table, counts.written) == (1, 1)
    counts = generated(list(scores), scores, lines=["x ||| 0.5", "y ||| 0.2"], keep=2, in_table=("x",), all_pairs=True)
    assert counts.in_table == 0
    lengths = ["x", "x x", "x x x x x x", "x x x x x x x"]
    assert (
        generated(
            lengths, dict.fromkeys(lengths, LN[0.5]), lines=["x ||| 0.5", "x x ||| 0.5", f"{lengths[2]} ||| 0.5"]
        ).wrong_length
        == 1
    )
    assert generated(lengths, dict.fromkeys(lengths, LN[0.5]), lines=["x ||| 0.5"], most_words=1).wrong_length == 3
    assert generated(["x"], {}, source="a b c d", lines=[]).wrong_length == 1
    assert generated(["a|b", "x [X]", "["], {"[": LN[0.5]}, lines=["[ ||| 0.5"]).unwritable == 2
    assert generated(["x", "y"], {"x": LN[0.5]}, lines=["x ||| 0.5"], knows={"x"}.__contains__).unknown_words == 1
    unknown = {"x": PairScore(LN[0.5], unknown_source=1), "y": PairScore(LN[0.5], unknown_target=1)}
    assert generated(["x", "y"], unknown, lines=["x ||| 0.5"]).unknown_words == 1
    assert generated(["x"], {"x": PairScore(LN[0.5], unknown_source=2)}, lines=[]).unknown_words == 1


def test_in_reverse_a_pair_must_be_as_likely_as_the_worst_of_the_table() -> None:
    scores = {"x": LN[0.5], "y": LN[0.25], "z": LN[0.25]}
    reverse = {"x": LN[0.2], "y": LN[0.01], "z": LN[0.1], "u": LN[0.5], "v": LN[0.1]}
    lines = ["x ||| 0.5 0.2", "z ||| 0.25 0.1"]
    assert generated(list(scores), scores, lines=lines, reverse=reverse, in_table=("u", "v")).below_reverse == 1
    lines.insert(1, "y ||| 0.25 0.01")
    assert generated(list(scores), scores, lines=lines, reverse=reverse).below_reverse == 0


def test_escapes_are_for_the_table_alone() -> None:
    generation = Generation(
        TableGenerator({"l' a": ["d' b"]}), TablePairScorer({("l' a", "d' b"): LN[0.5]}), Limits(), unescape=True
    )
    content = generate_chunk(Sources(1, 1, [Source(b"l&apos; a")]), generation).content
    assert content == b"l&apos; a ||| d&apos; b ||| 0.5 |||\n"


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(NmtError, match=r"log-probability nan for `a b \|\|\| x`; the model is damaged"):
        generated(["x"], {"x": math.nan}, lines=[])


@pytest.mark.parametrize("size", [1, 2, 100])
def test_sources_of_a_table_have_its_targets_whatever_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = tmp_path / "table"
    path.write_bytes(b"a ||| x ||| 1 |||\na ||| y ||| 1 |||\nb c |||z|||1\nd ||| \x0cu ||| 1 |||\n")
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", size)
    monkeypatch.setattr("scripts.experiments.cho2014.phrase_sources.SOURCES_AT_ONCE", size)
    blocks = list(sources_of_table(str(path)))
    assert [source for block in blocks for source in block.phrases] == [
        Source(b"a", (b"x", b"y")), Source(b"b c", (b"z",)), Source(b"d", (b"\x0cu",)),
    ]  # fmt: skip
    assert [(block.first, block.lines) for block in blocks] == {
        1: [(1, 2), (3, 1), (4, 1)],
        2: [(1, 2), (3, 2)],
        100: [(1, 4)],
    }[size]


@pytest.mark.parametrize("size", [1, 100])
def test_blanks_make_no_other_phrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Moses cuts phrases at any number of spaces and tabs: these lines are of one source for it."""
    path, text = tmp_path / "table", tmp_path / "text"
    path.write_bytes(b"a\tb ||| x  y ||| 1 |||\na  b ||| z ||| 1 |||\n a b||| u ||| 1 |||\n")
    text.write_bytes(b"a b\n")
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", size)
    (block,) = sources_of_table(str(path))
    assert (block.lines, block.phrases) == (3, [Source(b"a b", (b"x y", b"z", b"u"))])
    missing = [block.phrases for block in sources_of_text(str(text), most_words=2, missing_from=str(path))]
    assert missing == [[Source(b"a"), Source(b"b")]]
    generation = Generation(TableGenerator({"a b": ["x y"]}), TablePairScorer({("a b", "x y"): LN[0.5]}), Limits())
    assert generate_chunk(block, generation).counts.in_table == 1


def test_a_source_in_several_places_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(b"a ||| x ||| 1 |||\nb ||| y ||| 1 |||\na ||| z ||| 1 |||\n")
    with pytest.raises(NmtError, match=r"table:3: `a` stands in several places.*sort the table first"):
        list(sources_of_table(str(path)))


def test_a_source_of_too_many_words_is_named(tmp_path: Path) -> None:
    table, text = tmp_path / "table", tmp_path / "text"
    table.write_bytes(b"a a a ||| x ||| 1 |||\nb b b b ||| y ||| 1 |||\n")
    text.write_bytes(b"a a a\nb b b b\n")
    with pytest.raises(InputError, match=r"table:2: has 4 words; up to 3 are taken: divide the line, or allow more"):
        list(sources_of_table(str(table), longest=3))
    with pytest.raises(InputError, match=r"text:2: has 4 words; up to 3 are taken: divide the line, or allow more"):
        list(sources_of_text(str(text), most_words=2, missing_from=None, longest=3))
    assert len(list(sources_of_table(str(table), longest=4))) == 1
    text.write_bytes(b"a " * 5_000_000)
    begin = time.process_time()
    with pytest.raises(InputError, match=r"text:1: has 5,000,000 words; up to 1,000 are taken"):
        list(sources_of_text(str(text), most_words=7, missing_from=None))
    assert time.process_time() - begin < 5


def test_sources_of_a_text_are_its_ngrams_that_a_table_lacks(tmp_path: Path) -> None:
    text, table = tmp_path / "text", tmp_path / "table"
    text.write_bytes("b a  b\r\n\na|c é\n".encode())
    table.write_bytes(b"b ||| x ||| 1 |||\nb a ||| x ||| 1 |||\n")
    found = [
        source.phrase
        for block in sources_of_text(str(text), most_words=2, missing_from=None)
        for source in block.phrases
    ]
    assert found == [b"a b", b"a", b"b a", b"b", "é".encode()]
    blocks = sources_of_text(str(text), most_words=3, missing_from=str(table))
    assert [source.phrase for block in blocks for source in block.phrases] == [b"a b", b"a", b"b a b", "é".encode()]
