"""A truecaser of Moses for each side, that of the source first."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from smt_bridge.new.preparation import open_truecasers

WORDS = {"en": ["the", "dog", "sleeps"], "fr": ["le", "chien", "dort"]}


@pytest.mark.parametrize(("wrong", "side"), [("de fr", "en"), ("en de", "fr")])
def test_the_truecaser_of_either_side_is_looked_at(tmp_path: Path, wrong: str, side: str) -> None:
    for language, words in {**WORDS, "de": ["der", "hund", "bellt"]}.items():
        (tmp_path / f"model.{language}").write_text("".join(f"{word} (1/1)\n" for word in words))
        (tmp_path / f"train.{language}").write_text(" ".join(words) + "\n")
    train = [str(tmp_path / f"train.{language}") for language in WORDS]
    assert len(open_truecasers([str(tmp_path / f"model.{language}") for language in WORDS], train)) == 2
    with pytest.raises(ConfigError, match=rf"model.de: knows 0% of the words of .*train.{side}"):
        open_truecasers([str(tmp_path / f"model.{language}") for language in wrong.split()], train)
