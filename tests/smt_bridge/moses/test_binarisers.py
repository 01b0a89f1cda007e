"""The commands that make binary tables of text are those that Moses' programs take."""

from __future__ import annotations

import pytest

from smt_bridge.tables.wire import binarising_command


@pytest.mark.parametrize(
    ("kind", "scores", "expected"),
    [
        ("PhraseDictionaryCompact", 5, "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 5"),
        ("PhraseDictionaryCompact", 2, "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 2 -rankscore 1"),
    ],
)
def test_the_command_is_one_that_a_shell_takes(kind: str, scores: int, expected: str) -> None:
    assert binarising_command(kind, "a b.gz", scores=scores) == expected
