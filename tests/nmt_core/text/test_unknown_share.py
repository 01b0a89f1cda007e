"""From how many unknown words on text looks as if it were not prepared as a model's training text was."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt_core.text.unknown_share import UnknownShare
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary


def warnings_of(unknown: int, usual: float) -> list[str]:
    said: list[str] = []
    share = UnknownShare("runs/a", said.append, hint="", usual=usual)
    share.add(words=500, unknown=0)
    share.add(words=500, unknown=unknown)
    share.finish()
    return said


@pytest.mark.parametrize(
    ("unknown", "usual", "warned"),
    [
        (100, 0.0, False),
        (101, 0.0, True),
        (26, 0.013, False),  # Multi30k, 6,220 words: test_2017_mscoco, and the same text with glued punctuation
        (106, 0.013, True),
        (140, 0.103, False),  # 1,000 words: the same, and validation text with glued punctuation
        (173, 0.103, False),
        (174, 0.103, True),
        (850, 0.103, True),  # the other direction
    ],
)
def test_it_is_judged_by_what_the_training_text_had(unknown: int, usual: float, warned: bool) -> None:
    said = warnings_of(unknown, usual)
    assert len(said) == warned
    shown = {0.0: "", 0.013: " (1 % in its training text)", 0.103: " (10 % in its training text)"}[usual]
    first, rest = (
        f"runs/a: {unknown} of the first 1,000 words ({unknown / 10:.0f} %) are unknown to the model",
        ("; is the text prepared as its training text was (tokenised, cased, escaped, cut into subwords)?"),
    )
    assert all(message == f"{first}{shown}{rest}" for message in said)


@pytest.mark.parametrize(
    ("words", "unknown", "serve", "at_once", "at_the_end"),
    [
        (1000, 400, False, 1, 1),
        (999, 400, False, 0, 1),
        (100, 40, False, 0, 1),
        (99, 40, False, 0, 0),
        (1000, 500, True, 0, 0),
        (1000, 501, True, 1, 1),
    ],
)
def test_a_thousand_words_are_enough_and_at_the_end_a_hundred(
    words: int, unknown: int, serve: bool, at_once: int, at_the_end: int
) -> None:
    said: list[str] = []
    share = UnknownShare("runs/a", said.append, serve=serve)
    share.add(words=words, unknown=unknown)
    assert len(said) == at_once
    share.finish()
    share.finish()
    assert len(said) == at_the_end
    assert all(message.endswith("cut into subwords)? Raw text needs --raw") for message in said)


def test_counts_of_a_vocabulary_say_what_its_text_had(tmp_path: Path) -> None:
    lines = ["a a b c"] * 3 + [""] * 9
    vocabulary = build_vocabulary(lines, size=2)
    assert vocabulary.unknown_share == 0.25
    vocabulary.save(str(tmp_path / "counted"))
    assert Vocabulary.load(str(tmp_path / "counted")).unknown_share == 0.25
    plain = Vocabulary(vocabulary.words)
    assert plain.unknown_share == 0.0
    assert build_vocabulary([""]).unknown_share == 0.0
