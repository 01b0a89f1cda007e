"""`scripts/experiments/phrase_column/phrase_coverage.py`: shares worked out by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD = "a ||| w ||| 0.1 0.6\na ||| x ||| 0.2 0.5\na b ||| x  y ||| 0.3 1\nc ||| z ||| 1 1\n"
NEW = "a ||| x ||| 0.9\nb ||| y z x ||| 0.5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {"s": "a b\n\n", "r": "x y z x\nz\n", "old": OLD, "new": NEW, "long": "a\n"}.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/experiments/phrase_column/phrase_coverage.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("limit", "pairs", "lacking"), [("20", 3, 1), ("1", 2, 2)])
def test_ngrams_of_the_reference_are_looked_for_in_targets(folder: Path, limit: str, pairs: int, lacking: int) -> None:
    tables = ["--table", "old=old:2", "--table", "new=new:1", "--limit", limit]
    done = run(folder, "--source", "s", "--reference", "r", *tables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "| | words | 2-grams | 3-grams | 4-grams |",
        "|---|---|---|---|---|",
        "| old | 60.0 | 33.3 | 0.0 | 0.0 |",
        "| new | 80.0 | 66.7 | 50.0 | 0.0 |",
        "| all together | 80.0 | 100.0 | 50.0 | 0.0 |",
        "",
        f"old: {pairs} pairs of 2 source phrases",
        f"new: 2 pairs of 2 source phrases; old lacks {lacking} of these pairs, and 1 of these source phrases",
    ]


def test_the_score_chooses_the_targets(folder: Path) -> None:
    (folder / "old").write_text("a ||| w ||| 0.1 0.6\na ||| x ||| 0.2 0.5\n")
    for score, share in (("1", "40.0"), ("2", "0.0")):
        done = run(folder, "--source", "s", "--reference", "r", "--table", f"old=old:{score}", "--limit", "1")
        assert done.stdout.splitlines()[2] == f"| old | {share} | 0.0 | 0.0 | 0.0 |"
