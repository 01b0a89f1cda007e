"""``moses_effect`` and the table that it ends with: a small system with a program that behaves like Moses."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.smt_bridge.hybrid.small_hybrid import fake_moses
from tests.smt_bridge.tuning.small_loop import SOURCE, write_system

ROOT = Path(__file__).parents[2]
NEEDED = ("--ini", "moses.ini", "--table", "table", "--model", "model", "--dev", "dev.in=dev.ref")
OPTIONS = (*NEEDED, "--test", "news=test.gz=test.ref", "--out", "out", "--seeds", "2")
TUNING = ("--tune", "--nbest 3 --tuner runs=1 --tuner restarts=3 --max-rounds 3")


def run(
    folder: Path, *arguments: object, script: str = "experiments/phrase_column/moses_effect"
) -> subprocess.CompletedProcess[str]:
    """The script in the folder, which is the only place that may have a ``moses``."""
    paths = {"PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **paths, "FAKE_MOSES": "weighted"}
    command = [str(ROOT / "scripts" / script), *map(str, arguments)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A Moses system, its table, a model and a test set."""
    fake_moses(tmp_path)
    write_system(tmp_path)
    (tmp_path / "table").write_text(
        "".join(f"{word} ||| {word} ||| 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" for word in "abcde")
    )
    (tmp_path / "test.gz").write_bytes(gzip.compress((tmp_path / "dev.in").read_bytes()))
    (tmp_path / "test.ref").write_bytes((tmp_path / "dev.ref").read_bytes())
    words = Vocabulary([*SPECIAL_WORDS, *"abcde"])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    model = new_model(config, len(words.words), len(words.words), seed=5)
    save_model(str(tmp_path / "model"), model, words, words, FolderConfig(model=config))
    return tmp_path


@pytest.mark.timeout(900)  # a dozen processes, on a busy machine
@pytest.mark.long
def test_both_systems_are_tuned_and_compared_once(system: Path) -> None:
    done = run(system, *OPTIONS, *TUNING)
    assert done.returncode == 0, done.stderr
    out = system / "out"
    without, beside = ((out / f"{name}.ini").read_text() for name in ("without", "with"))
    assert without == (system / "moses.ini").read_text()
    assert "TM0= 0.3 7 0.1 0\n" in beside  # the same start
    for name in ("without", "with"):
        for seed in (1, 2):
            assert (out / f"{name}.{seed}.ini").read_text() != (out / f"{name}.ini").read_text()
            assert len((out / f"news.{name}.{seed}.txt").read_text().splitlines()) == len(SOURCE)
    rows = done.stdout.splitlines()
    assert rows[0] == "news"
    assert [row.count(" ± ") for row in rows[4:6]] == [2, 2]
    assert rows[4].startswith("| without the column | ") and rows[4].endswith(" |  |")
    assert rows[5].startswith("| with the column | ") and rows[5].count(", ") == 1
    assert done.stdout == (out / "results.md").read_text()
    (out / "news.with.2.txt").unlink()
    again = run(system, *OPTIONS, *TUNING)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert again.stderr.splitlines() == [f"== decoding news with with.2 (log: {out}/news.with.2.log)"]
    other = run(system, *OPTIONS, *TUNING, "--model", "other")
    assert other.returncode == 2
    assert other.stderr.endswith("; give another --out\n") and len(other.stderr.splitlines()) == 1


def test_runs_of_a_system_are_one_row(tmp_path: Path) -> None:
    (tmp_path / "reference").write_text("a b c d e\nf g h i j\n")
    (tmp_path / "right").write_text("a b c d e\nf g h i j\n")
    (tmp_path / "wrong").write_text("a b c d x\nf g h x j\n")
    systems = ("before=wrong", "before=right", "after=right", "after=right")
    done = run(tmp_path, "--reference", "reference", *systems, script="results_table.py")
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()[2:4]
    assert before.startswith("| before | ") and before.endswith(" |  |") and before.count(" ± ") == 2
    assert after.startswith("| after | 100.00 ± 0.00 | 100.00 ± 0.00 | ") and after.endswith(", 1.0000 |")
    done = run(tmp_path, "--reference", "reference", *systems[1:], script="results_table.py")
    assert (done.returncode, done.stderr) == (2, "results_table: after has 2 runs but before has 1\n")
