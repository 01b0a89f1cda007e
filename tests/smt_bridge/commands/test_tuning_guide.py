"""The commands of docs/lists.md for files of Moses' tuners run as they are written."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two rounds of twelve sentences with four hypotheses, as ``extractor`` writes them."""
    features, scores = [], []
    for sentence in range(12):
        features.append(f"FEATURES_TXT_BEGIN_0 {sentence} 4 3 LM0_0 TM0_0 TM0_1\n")
        scores.append(f"SCORES_TXT_BEGIN_0 {sentence} 4 9 BLEU\n")
        for entry in range(4):
            length = 7 - (entry * 3 + sentence) % 4
            features.append(f"-{entry + 1} -{(entry + sentence) % 4} 0.5\n")
            scores.append(" ".join(f"{length - n} {length - n}" for n in range(4)) + " 7\n")
        features.append("FEATURES_TXT_END_0\n")
        scores.append("SCORES_TXT_END_0\n")
    for number in (1, 2):
        (tmp_path / f"run{number}.features.dat.gz").write_bytes(gzip.compress("".join(features).encode()))
        (tmp_path / f"run{number}.scores.dat.gz").write_bytes(gzip.compress("".join(scores).encode()))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "smt-bridge").write_text(f'#!/bin/sh\nexec {sys.executable} -m smt_bridge "$@"\n')
    (programs / "smt-bridge").chmod(0o755)
    return tmp_path


def commands(heading: str) -> str:
    """The first block of commands behind a heading of the document."""
    text = (ROOT / "docs" / "lists.md").read_text()
    found = re.search(rf"\*\*{re.escape(heading)}\*\*.*?```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def run(script: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_our_tuner_reads_moses_files(folder: Path) -> None:
    run(commands("Moses' files, our tuner"), folder)
    assert "TM0= " in (folder / "weights").read_text()
