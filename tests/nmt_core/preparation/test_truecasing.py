"""Truecasing, learned and undone."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
import sacremoses

from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.words import Truecasing, learn_truecasing

TEXT = """\
The man saw the dog in Paris .
&quot; Dogs bark . &quot; The end of the day !
Paris is big , McDonald is not . Unseen words stay .
3 Men saw McDonald , and Berlin and NATO
"""


def learned(tmp_path: Path) -> Truecasing:
    (tmp_path / "text").write_text(TEXT)
    learn_truecasing(str(tmp_path / "text"), str(tmp_path / "model"))
    return Truecasing.open(ModelFile.read(str(tmp_path / "model")))


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


@pytest.mark.parametrize("language", ["en", "de"])
def test_sentences_begin_as_moses_writes_them(shared: Path, tmp_path: Path, language: str) -> None:
    """sacremoses' truecaser agrees wherever a sentence begins; it also changes words it never saw elsewhere."""
    with gzip.open(shared / f"data/multi30k/train.tok.{language}.gz", "rt") as stream:
        lines = [line.rstrip("\n") for line in itertools.islice(stream, 3000)]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    learn_truecasing(str(tmp_path / "text"), str(tmp_path / "model"))
    ours, theirs = Truecasing.open(ModelFile.read(str(tmp_path / "model"))), sacremoses.MosesTruecaser()
    theirs.train([line.split(" ") for line in lines])
    pairs = [(ours.apply(line), theirs.truecase(line, return_str=True, use_known=True)) for line in lines]
    assert sum(one == other for one, other in pairs) > 0.99 * len(pairs)
    first_words = [(one.split(" ")[0], other.split(" ")[0]) for one, other in pairs]
    assert sum(one == other for one, other in first_words) > 0.999 * len(pairs)  # but for forms that are as frequent
