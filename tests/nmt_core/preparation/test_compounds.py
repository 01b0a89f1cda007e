"""Compound splitting against the paper's example and against all ways to split."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.words import LONGEST, Compounds, CompoundsConfig, best_split, learn_compounds, remembered

# Koehn and Knight (2003), section 3.2
PAPER = {"aktionsplan": 852, "aktion": 960, "aktions": 5, "akt": 224, "ion": 1, "plan": 710}
FORMS = {"aktion": ("Aktion", 960), "plan": ("Plan", 710), "klein": ("klein", 50), "kind": ("Kind", 90)}


def parts(word: str, counts: dict[str, int], **options: int) -> list[str]:
    return [part for part, _ in best_split(word, counts, **options)]


def test_the_example_of_the_paper() -> None:
    assert parts("aktionsplan", PAPER) == ["aktionsplan"]
    ways = [["aktion", "plan"], ["aktions", "plan"], ["akt", "ion", "plan"]]
    means = [math.prod(PAPER[part] for part in way) ** (1 / len(way)) for way in ways]
    assert [round(mean, 1) for mean in means] == [825.6, 59.6, 54.2]
    for left_out, way in zip(["aktionsplan", "aktion", "aktions"], ways, strict=True):
        rest = list(PAPER)[list(PAPER).index(left_out) + 1 :]
        assert parts("aktionsplan", {word: PAPER[word] for word in rest}) == way


def test_frequent_parts_beat_a_rarer_whole() -> None:
    assert parts("freitag", {"freitag": 556, "frei": 885, "tag": 1864}) == ["frei", "tag"]


def test_fillers_stand_between_parts_only() -> None:
    assert best_split("bundestag", {"bund": 5, "tag": 5}) == [("bund", "es"), ("tag", "")]
    assert parts("tages", {"tag": 5}) == ["tages"]
    assert parts("hundefutters", {"hunde": 5, "futter": 5}) == ["hundefutters"]


def test_parts_have_a_least_length_and_count() -> None:
    counts = {"ab": 100, "cdef": 100, "gehen": 2}
    assert parts("abcdef", counts) == ["abcdef"]
    assert parts("abcdef", counts, minimum_length=2) == ["ab", "cdef"]
    assert parts("cdefgehen", counts, minimum_count=3) == ["cdefgehen"]


def test_a_tie_leaves_the_word_whole() -> None:
    assert parts("abcdef", {"abcdef": 4, "abc": 2, "def": 8}) == ["abcdef"]


def all_ways(word: str, counts: dict[str, int]) -> Iterator[list[str]]:
    """Every way of known parts of at least 3 letters with fillers between them, the word itself included."""
    yield [word]
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, len(word)), n) for n in range(1, 4)):
        pieces = [word[a:b] for a, b in itertools.pairwise((0, *cuts, len(word)))]
        for fillers in itertools.product(("", "s", "es"), repeat=len(pieces) - 1):
            if all(piece.endswith(filler) for piece, filler in zip(pieces, fillers, strict=False)):
                way = [piece.removesuffix(filler) for piece, filler in zip(pieces, (*fillers, ""), strict=True)]
                if all(len(part) >= 3 and counts.get(part, 0) for part in way):
                    yield way


@given(
    st.lists(st.text("aes", min_size=3, max_size=4), min_size=1, max_size=4),
    st.dictionaries(st.text("aes", min_size=3, max_size=5), st.integers(1, 9), max_size=8),
)
def test_no_other_way_is_better(chosen: list[str], counts: dict[str, int]) -> None:
    word = "".join(chosen)[:12]
    found = parts(word, counts)
    best = math.prod(counts.get(part, 0) for part in found)
    for way in all_ways(word, counts):
        assert math.prod(counts.get(part, 0) for part in way) ** len(found) <= best ** len(way)


def test_parts_are_written_in_their_usual_form() -> None:
    step = Compounds(CompoundsConfig(), FORMS)
    assert step.apply("ein Aktionsplan f\u00fcr Kleinkind &quot; und Aktions-plan") == (
        "ein Aktion Plan f\u00fcr klein Kind &quot; und Aktions-plan"
    )
    assert step.undo("Aktion Plan") == "Aktion Plan"
    forms = {"kind": ("Kind", 9), "k" * 96: ("K" * 96, 9), "k" * 97: ("K" * 97, 9), "kin": ("Kin", 99)}
    long, longer, short = "kind" + "k" * 96, "kind" + "k" * 97, "kinki"  # more than 100 letters, fewer than two parts
    assert Compounds(CompoundsConfig(), forms).apply(f"{long} {longer} {short}") == f"Kind {'K' * 96} {longer} {short}"

    words = "Planaktion Aktionnplan Eiplan"
    for option, found in (
        ({}, "Plan Aktion Aktionnplan Eiplan"),
        ({"fillers": ("n",)}, "Plan Aktion Aktion Plan Eiplan"),
        ({"minimum_length": 2}, "Plan Aktion Aktionnplan Ei Plan"),
        ({"minimum_count": 711}, words),
    ):
        assert Compounds(CompoundsConfig.model_validate(option), FORMS | {"ei": ("Ei", 900)}).apply(words) == found


@pytest.mark.parametrize(
    "word", ["Aktionsplan", "aktionsplan", "Kleinkind", "AktionsPlan", "KLEINKIND", "Planaktionkind"]
)
def test_marks_bring_the_word_back(word: str) -> None:
    step = Compounds(CompoundsConfig(mark=True), FORMS)
    line = f"der {word} ist da ."
    assert step.undo(step.apply(line)) == line


def test_marks_name_the_filler() -> None:
    step = Compounds(CompoundsConfig(mark=True), FORMS)
    assert step.apply("Aktionsplan kleinkind") == "Aktion @s@ Plan klein @+@ Kind"


def test_learning_counts_all_forms_of_a_word(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Plan plan Plan , aktion Aktion Aktion 3 x2\n")
    learn_compounds(str(tmp_path / "text"), str(tmp_path / "model"))
    assert (tmp_path / "model").read_text() == "Aktion\t3\nPlan\t3\n"
    step = Compounds.open(ModelFile.read(str(tmp_path / "model")), CompoundsConfig())
    assert step.apply("aktionsplan") == "Aktion Plan"


def test_of_all_words_the_last_are_remembered_but_no_endless_one() -> None:
    asked: list[str] = []
    known = remembered(lambda word: asked.append(word))
    for number in range((1 << 18) + 1):
        known(f"{number}")
    for word in ("1", "0", "x" * (LONGEST + 1), "x" * (LONGEST + 1)):
        known(word)
    assert len(asked) == (1 << 18) + 4
