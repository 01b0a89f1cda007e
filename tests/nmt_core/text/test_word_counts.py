"""Lexicons from aligned corpora."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from nmt_core.text.alignment import LinkedPair, read_aligned
from nmt_core.text.lexicon import Keep, lexicon_of


def write(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in texts]


def test_probabilities_are_shares_of_a_words_points() -> None:
    pairs = [
        LinkedPair(["the", "house"], ["la", "maison"], [(0, 0), (1, 1)]),
        LinkedPair(["the", "house"], ["le", "foyer", "là"], [(1, 1)]),
    ]
    everything = lexicon_of(pairs, Keep(null=True))
    assert list(everything.lines()) == [
        "le NULL 0.5000000",
        "là NULL 0.5000000",
        "foyer house 0.5000000",
        "maison house 0.5000000",
        "NULL the 0.5000000",
        "la the 0.5000000",
    ]
    assert set(lexicon_of(pairs, Keep()).entries) == {"house", "the"}


@pytest.mark.parametrize(("direction", "name"), [((0, 1), "lex.f2e.gz"), ((1, 0), "lex.e2f.gz")])
def test_a_real_alignment_gives_the_lexicon_that_moses_made_of_it(
    shared: Path, direction: tuple[int, int], name: str
) -> None:
    corpus = [str(shared / f"data/multi30k/train.tok.{language}.gz") for language in ("en", "fr")]
    moses = shared / "moses/en-fr"
    pairs = read_aligned(*corpus, str(moses / "aligned.grow-diag-final-and.gz"))
    if direction == (1, 0):
        pairs = (LinkedPair(two, one, [(t, s) for s, t in points]) for one, two, points in pairs)
    found = lexicon_of(pairs, Keep(null=True))
    assert sorted(found.lines()) == sorted(gzip.decompress((moses / name).read_bytes()).decode().split("\n")[:-1])


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (
            "0-0\n1-2\n",
            r"points:2: point 1-2, but the sentences have 2 words and 1; is it the alignment of another corpus\?",
        ),
        ("2-0\n\n", r"points:1: point 2-0, but the sentences have 2 words and 2; is it the alignment of another"),
        ("0-0 0-1\n0-1\n", r"points:2: point 0-1, .* are source and target exchanged\?"),
        ("0-0\n0=1\n", r"points:2: alignment point '0=1'"),
        ("0-0\n", r"points:2: has 1 line but .*source has 2"),
        ("0-0\n0-0\n\n", r"source:3: has 2 lines but .*points has 3"),
    ],
)
def test_an_alignment_of_something_else_is_refused(tmp_path: Path, points: str, message: str) -> None:
    paths = write(tmp_path, source="a b\nc d\n", target="x y\nz\n", points=points)
    with pytest.raises(InputError, match=message):
        list(read_aligned(*paths))
