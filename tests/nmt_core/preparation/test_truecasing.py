"""Truecasing, learned and undone."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
import sacremoses

from nmt_core.base.errors import InputError
from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.truecasing import Truecasing, learn_truecasing, open_truecasing

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
    assert step.apply("The dog . The end ? The dog ! The , The") == "the dog . the end ? the dog ! the , The"
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


# Made and written by the Perl scripts of Moses (commit 3445289) from a text of 4 lines.
MOSES_MODEL = """\
&apos;s (1/1)
&quot; (1/1)
Berlin (1/1)
Mary (1/1)
McDonald (1/1)
Paris (2/2)
Times (1/1)
bark (1/1)
dog (1/2) Dog (1)
house (2/2)
in (1/1)
said (1/1)
saw (4/4)
the (1/2) THE (1)
too (1/1)
"""
MOSES_LINES = [  # as it was, what truecase.perl makes of it, and what detruecase.perl makes of that
    ("THE house : A Dog", "the house : A Dog", "The house : A Dog"),
    ("&quot; Élodie saw the times .", "&quot; Élodie saw the Times .", "&quot; Élodie saw the Times ."),
    ("( &apos; Dogs BARK . ] MCDONALD", "( &apos; Dogs bark . ] McDonald", "( &apos; Dogs bark . ] McDonald"),
    (
        "mary ! unseen Words In PARIS ? &#91; [ Too",
        "Mary ! unseen Words in Paris ? &#91; [ too",
        "Mary ! Unseen Words in Paris ? &#91; [ Too",
    ),
    ("élodie , It I i .", "élodie , It I i .", "Élodie , It I i ."),
    ("", "", ""),
]


def test_a_model_of_moses_works_as_the_scripts() -> None:
    step = open_truecasing(ModelFile("truecase-model.en", MOSES_MODEL.encode()))
    for line, truecased, back in MOSES_LINES:
        assert (step.apply(line), step.undo(truecased)) == (truecased, back)
    assert step.undo("paris . &quot; élodie said : no &#91; ß ( the") == "Paris . &quot; Élodie said : No &#91; ß ( the"


def test_a_line_of_no_model_is_named() -> None:
    with pytest.raises(
        InputError,
        match=r"^truecase-model.en:2: expected a line of train-truecaser.perl, such as 'the \(10/12\) The \(2\)'$",
    ):
        open_truecasing(ModelFile("truecase-model.en", b"the (1/2) The (1)\nthe The\n"))
    for line in (b"the\tx", b"the", b"\t3"):
        with pytest.raises(InputError, match=r"^truecasing.en:2: expected a word, a tab and a count$"):
            open_truecasing(ModelFile("truecasing.en", b"the\t1\n" + line))
    with pytest.raises(InputError, match=r"^truecasing.en:2: not UTF-8 at byte 1; "):
        open_truecasing(ModelFile("truecasing.en", b"the\t1\n\xff\t1\n"))
    assert isinstance(open_truecasing(ModelFile("of no words", b"")), Truecasing)
