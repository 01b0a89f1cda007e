"""The examples of docs/api.md run as they are written, one behind the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.commands import ROOT
from tests.docs.newcomer import PHRASES, SENTENCES

pytestmark = pytest.mark.slow
EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    printed = []
    for number, example in enumerate(EXAMPLES, start=1):
        exec(compile(example, f"docs/api.md, example {number}", "exec"), names)
        printed.append(capsys.readouterr().out.splitlines())
    models, numbers, attention, table, lists = printed
    assert len(models) == 5
    assert numbers[-1] == "(2, 16)"
    assert "(6, 6)" in attention[0]
    assert 0 < int(table[0].split()[0]) <= PHRASES
    assert len(lists) == 4
    assert len((folder / "runs" / "test.scored.gz").read_bytes()) > SENTENCES
    assert (folder / "runs" / "weights.api").read_text().startswith("[weight]\n")
