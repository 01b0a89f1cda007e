"""Word alignment by SIL Thot."""

from __future__ import annotations

import sys

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.text.word_aligner import ALIGNERS, align

CORPUS = [
    (source.split(), target.split())
    for source, target in [
        ("the house", "la maison"),
        ("the big house", "la grande maison"),
        ("", "rien"),
        ("the cat", "la chatte"),
        ("a cat", "une chatte"),
        ("big", "grande"),
        ("x " * 2000, "y"),
    ]
    * 3
]


@pytest.mark.parametrize("model", sorted(ALIGNERS))
def test_words_that_come_together_are_linked(model: str) -> None:
    pytest.importorskip("thot")
    pairs = list(align(CORPUS, model=model, iterations=5))
    assert [pair.source for pair in pairs] == [source for source, _ in CORPUS if 0 < len(source) < 2000]
    assert pairs[0].points == [(0, 0), (1, 1)]
    assert pairs[2].points == [(0, 0), (1, 1)]
    assert pairs == list(align(CORPUS, model=model, iterations=5))


def test_what_cannot_be_aligned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("thot")
    with pytest.raises(ConfigError, match="no pair of sentences"):
        align([([], ["a"])], model="hmm", iterations=1)
    with pytest.raises(ConfigError, match="aligner 'giza': expected fast_align or hmm"):
        align(CORPUS, model="giza", iterations=1)
    monkeypatch.setitem(sys.modules, "thot", None)
    with pytest.raises(ConfigError, match=r"pip install 'hybridmt\[align\]'"):
        align(CORPUS, model="hmm", iterations=1)
