"""The commands of docs/lists.md for files of Moses' tuners run as they are written."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pytest

from smt_bridge.commands.main import main

LISTS = Path(__file__).parents[3] / "docs" / "lists.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds of twelve sentences with four hypotheses, as ``extractor`` writes them."""
    monkeypatch.chdir(tmp_path)
    features, scores = "", ""
    for sentence in range(12):
        features += f"FEATURES_TXT_BEGIN_0 {sentence} 4 3 LM0_0 TM0_0 TM0_1\n"
        scores += f"SCORES_TXT_BEGIN_0 {sentence} 4 9 BLEU\n"
        for entry in range(4):
            length = 7 - (entry * 3 + sentence) % 4
            features += f"-{entry + 1} -{(entry + sentence) % 4} 0.5\n"
            scores += " ".join(f"{length - n} {length - n}" for n in range(4)) + " 7\n"
        features += "FEATURES_TXT_END_0\n"
        scores += "SCORES_TXT_END_0\n"
    for number in (1, 2):
        Path(f"run{number}.features.dat.gz").write_bytes(gzip.compress(features.encode()))
        Path(f"run{number}.scores.dat.gz").write_bytes(gzip.compress(scores.encode()))


def test_our_tuner_reads_moses_files() -> None:
    block = re.search(r"\*\*Moses' files, our tuner\*\*.*?```\n(.*?)```", LISTS.read_text(), re.DOTALL)
    assert block is not None
    commands = [shlex.split(line) for line in block[1].replace("\\\n", " ").splitlines()]
    assert len(commands) == 2
    for program, *arguments in commands:
        assert program == "smt-bridge" and main(arguments) == 0
    assert "TM0= " in Path("weights").read_text()
