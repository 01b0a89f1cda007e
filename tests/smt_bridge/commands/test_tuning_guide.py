"""The commands of docs/tuning.md run as they are written, and rerank takes what they end in."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# In place of Moses' programs where these are not installed: they read what they are given and write in the same form.
_STAND_IN = """#!{python}
import sys
arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
count = int(open(arguments["--ffile"]).readline().split()[3])
assert open(arguments["--scfile"]).readline().startswith("SCORES_TXT_BEGIN_0")
start = open(arguments.get("--ifile") or arguments["--dense-init"]).readline().split()
assert len(start) == count
if "-d" in arguments:
    assert int(arguments["-d"]) == count
    open("weights.txt", "w").write(" ".join(start))
else:
    open(arguments["-o"], "w").writelines(f"F{{place}} {{weight}}\\n" for place, weight in enumerate(start))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lists, references = [], []
    for sentence in range(12):
        for entry in range(4):
            words = " ".join(["la maison est petite et belle ."][0].split()[: 7 - (entry * 3 + sentence) % 4])
            numbers = f"LM0= -{entry + 1} TM0= -{(entry + sentence) % 4} 0.5 PB_x= 1"
            lists.append(f"{sentence} ||| {words} ||| {numbers} ||| -1\n")
        references.append("la maison est petite et belle .\n")
    for name, lines in (("val.rich.gz", lists), ("val.tok.fr.gz", references)):
        (tmp_path / name).write_bytes(gzip.compress("".join(lines).encode()))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("kbmira", "mert"):
        (programs / name).write_text(_STAND_IN.format(python=sys.executable))
        (programs / name).chmod(0o755)
    (programs / "smt-bridge").write_text(f'#!/bin/sh\nexec {sys.executable} -m smt_bridge "$@"\n')
    (programs / "smt-bridge").chmod(0o755)
    return tmp_path


def commands(heading: str) -> str:
    """The first block of commands behind a heading of the document."""
    text = (ROOT / "docs" / "tuning.md").read_text()
    found = re.search(rf"\*\*{re.escape(heading)}\*\*.*?```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def run(script: str, folder: Path) -> None:
    path = f"{os.environ['PATH']}:{folder / 'bin'}"  # Moses' own where they are
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_our_features_with_moses_tuners_and_its_files_with_ours(folder: Path) -> None:
    run(commands("Our features, Moses' tuner"), folder)
    assert len((folder / "val.best.fr").read_text().splitlines()) == 12
    assert "LM0= " in (folder / "weights").read_text()
    for kind in ("features", "scores"):
        content = (folder / f"rich.{kind}.dat").read_bytes()
        for number in (1, 2):
            (folder / f"run{number}.{kind}.dat.gz").write_bytes(gzip.compress(content))
    run(commands("Moses' files, our tuner"), folder)
    assert "TM0= " in (folder / "weights").read_text()
