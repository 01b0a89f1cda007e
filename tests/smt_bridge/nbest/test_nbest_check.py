"""A list of another source, or one that has slipped, is told from one that belongs to it."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

from nmt_core.files import read_lines
from smt_bridge.nbest.checks import SampledPair, looks_unrelated, sampled_pair, warnings_of_references
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.nbest.order import ordered_lists


def text_of(words: int, letter: str) -> str:
    return " ".join([letter * 4] * words)


LENGTHS = [random.Random(place).randint(3, 40) for place in range(60)]
RELATED = [SampledPair(text_of(length, "a"), text_of(length + 1, "b")) for length in LENGTHS]


def test_related_list_is_left_in_peace() -> None:
    assert looks_unrelated(RELATED) is None


def test_lengths_of_other_sentences_are_noticed() -> None:
    mixed = [
        SampledPair(text_of(length, "a"), text_of(other, "b"))
        for length, other in zip(LENGTHS, sorted(LENGTHS), strict=True)
    ]
    said = r"long sources do not have long hypotheses \(correlation -?0\.\d\d over 60 sentences\)"
    assert re.fullmatch(said, str(looks_unrelated(mixed)))


def test_copied_names_outweigh_lengths() -> None:
    named = [
        SampledPair(text_of(length, "a") + f" Name{place}", text_of(LENGTHS[-place], "b") + f" Name{place}")
        for place, length in enumerate(LENGTHS)
    ]
    assert looks_unrelated(named) is None


@pytest.mark.parametrize(("shift", "said"), [(1, "1 higher"), (-2, "2 lower")])
def test_slipped_list_is_named(shift: int, said: str) -> None:
    moved = [pair._replace(source=RELATED[(place - shift) % 60].source) for place, pair in enumerate(RELATED)]
    assert looks_unrelated(moved) == f"the hypotheses fit sources whose ids are {said}; was a line lost or added?"


def test_alignment_behind_the_source_is_noticed() -> None:
    entry = parse_entry(b"0 ||| a b ||| A= 1 ||| 1 ||| 0-0 9-1 ", path="list", number=1)
    assert sampled_pair(b"x y", entry) == SampledPair("x y", "a b", 9)
    outside = "alignments of 1 of 1 sentence point behind the end of their source"
    assert looks_unrelated([sampled_pair(b"1 2 3 4 5 6 7 8", entry)]) == outside
    assert looks_unrelated([sampled_pair(b"1 2 3 4 5 6 7 8 9", entry)]) is None  # a chart counts <s>, too
    assert looks_unrelated([*RELATED * 40, *[SampledPair("x", "y", 9)] * 9999]) is None  # 2,000 are looked at


def test_another_language_by_far_is_noticed() -> None:
    said = "half of the hypotheses have 0.1 times the characters of their reference"
    assert looks_unrelated([SampledPair("a" * 90, "b" * 9)] * 20, text="reference") == said
    assert looks_unrelated([SampledPair("a" * 90, "b" * 9)] * 19) is None  # too few


def test_few_or_equal_sentences_say_nothing() -> None:
    assert looks_unrelated([SampledPair("a b c", "d" * 30)] * 5) is None
    assert looks_unrelated([SampledPair("a b c", "d e f")] * 50) is None
    assert looks_unrelated([]) is None


@pytest.mark.parametrize(("tokenize", "is_warned"), [(None, True), ("none", True), ("13a", False)])
def test_a_reference_is_of_the_form_that_is_compared(tokenize: str | None, is_warned: bool) -> None:
    firsts, plain = [(0, "a , b &quot;")], ("r", ["a, b"])
    said = list(warnings_of_references(firsts, [plain], of="l", detokenize=None, tokenize=tokenize))
    glued = "warning: r is not tokenised as the list is: scores will be too low"
    assert said == [f"{glued}; give the tokenised reference, or --detokenize LANG"] * is_warned
    said = list(warnings_of_references(firsts, [("r", ["a , b &quot;"])], of="l", detokenize="en", tokenize=tokenize))
    escaped = "has Moses' escapes, but with --detokenize it must be plain text"
    assert said == [f"warning: r {escaped}: scores will be too low"]


def test_real_lists_and_sources_are_told_apart(shared: Path) -> None:
    names = ("val", "test_2017_mscoco")
    sources = {name: list(read_lines(str(shared / f"data/multi30k/{name}.tok.en.gz"))) for name in names}
    for name, other in itertools.product(names, names):
        with ordered_lists(str(shared / f"moses/en-fr/{name}.nbest100.gz")) as ordered:
            few = itertools.islice(ordered.lists, 200)
            reason = looks_unrelated(sampled_pair(sources[other][group.sentence], group.entries[0]) for group in few)
        assert (reason is None) == (name == other)


def test_a_list_that_fits_its_own_source_best_is_left_in_peace() -> None:
    draw = random.Random(3)
    pairs = []
    for _ in range(200):
        length = draw.randint(10, 40)
        pairs.append(SampledPair(" ".join(["aaaa"] * length), " ".join(["bbbb"] * (length // 2 + draw.randint(1, 24)))))
    assert looks_unrelated(pairs) is None
    assert "correlation 0.0" in str(
        looks_unrelated([one._replace(source=pairs[-n].source) for n, one in enumerate(pairs)])
    )
