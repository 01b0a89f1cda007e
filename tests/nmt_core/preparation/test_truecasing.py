"""Truecasing, learned and undone."""

from __future__ import annotations

from pathlib import Path

from nmt_core.preparation.truecasing import Truecasing, learn_truecasing

TEXT = """\
The man saw the dog in Paris .
&quot; Dogs bark . &quot; The end of the day !
Paris is big , McDonald is not . Unseen words stay .
3 Men saw McDonald , and Berlin and NATO
"""


def learned(tmp_path: Path) -> Truecasing:
    (tmp_path / "text").write_text(TEXT)
    learn_truecasing(str(tmp_path / "text"), str(tmp_path / "model"))
    return Truecasing.open(str(tmp_path / "model"))


def test_first_words_take_their_usual_form(tmp_path: Path) -> None:
    step = learned(tmp_path)
    assert step.apply("The dog . The end") == "the dog . the end"
    assert step.apply("&quot; ( The dog") == "&quot; ( the dog"
    assert step.apply("MCDONALD saw THE dog") == "McDonald saw THE dog"
    assert step.apply("Nato is") == "NATO is"
    assert step.apply("Unseen words") == "Unseen words"
    assert step.apply("") == ""


def test_a_number_begins_a_sentence(tmp_path: Path) -> None:
    assert learned(tmp_path).apply("3 The dog") == "3 The dog"


def test_capitals_come_back(tmp_path: Path) -> None:
    step = learned(tmp_path)
    for line in TEXT.splitlines():
        assert step.undo(step.apply(line)) == line
