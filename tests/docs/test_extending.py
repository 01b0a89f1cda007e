"""The examples of docs/extending.md run as they are written, one behind the other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.api import read_nbest
from tests.docs.commands import ROOT

EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "extending.md").read_text(), re.MULTILINE | re.DOTALL)
HYPOTHESES = [["il fait froid .", "fait-il froid ?", "froid ?"], ["la maison", "maison la", "maison"]]
REFERENCES = ["fait-il froid ?", "la maison"]


def make_files(folder: Path) -> None:
    lines = [
        f"{number} ||| {text} ||| A= {-place} ||| {-place}\n"
        for number, texts in enumerate(HYPOTHESES)
        for place, text in enumerate(texts)
    ]
    (folder / "dev.nbest").write_text("".join(lines))
    (folder / "dev.en").write_text("is it cold ?\nthe house\n")
    (folder / "dev.fr").write_text("".join(f"{line}\n" for line in REFERENCES))


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, example in enumerate(EXAMPLES, start=1):
        exec(compile(example, f"docs/extending.md, example {number}", "exec"), names)
    tried, scores, *weights = capsys.readouterr().out.splitlines()
    assert tried == "[[(0.0,), (1.0,)]]"
    rich = read_nbest(str(tmp_path / "dev.rich"))
    assert [entry.features["Question0"] for part in rich for entry in part.entries] == [(1,), (0,), (0,), *[(0,)] * 3]
    # equal weights choose the first of each list, 3 of whose 6 words match the 5 of the references
    at_start, tuned = map(float, scores.split(" -> "))
    assert at_start == pytest.approx(200 * 3 / (6 + 5), abs=0.01)
    assert tuned == 100
    assert [line.split()[0] for line in weights] == ["A", "Question0"]
    signs = {line.split()[0]: np.sign(float(re.findall(r"-?\d[\d.e-]*", line)[-1])) for line in weights}
    assert signs["Question0"] < 0
