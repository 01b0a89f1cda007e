"""How many words of a text a lexicon knows: each time that they stand in it."""

from __future__ import annotations

from pathlib import Path

from smt_bridge.features.model1 import Lexicon


def test_words_count_as_often_as_they_stand_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "lex").write_text("la the 0.5\nmaison house 0.75\n")
    lexicon = Lexicon(str(tmp_path / "lex"))
    assert lexicon.knows_generated(["la", "maison", "la", "chat"]) == 3
