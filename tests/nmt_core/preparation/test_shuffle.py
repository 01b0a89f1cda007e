"""A random order that keeps lines together."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import pytest

from nmt_core.base.errors import InputError
from nmt_core.preparation.corpus import shuffle

LINES = 7000


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    (tmp_path / "a").write_text("".join(f"{number} \u00e4\n" for number in range(LINES)))
    (tmp_path / "b").write_bytes(gzip.compress("".join(f"{number} b\n" for number in range(LINES)).encode()))
    return [str(tmp_path / name) for name in "ab"]


def shuffled(corpus: list[str], tmp_path: Path, **options: int) -> tuple[list[str], list[str]]:
    outputs = [str(tmp_path / "out.a"), str(tmp_path / "out.b")]
    assert shuffle(corpus, outputs, **{"seed": 1, **options}) == LINES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "out.a", "out.b"]
    first, second = (Path(path).read_text().splitlines() for path in outputs)
    return first, second


def test_it_is_a_permutation_of_pairs(corpus: list[str], tmp_path: Path) -> None:
    first, second = shuffled(corpus, tmp_path)
    assert sorted(first) == sorted(f"{number} \u00e4" for number in range(LINES))
    assert [line.split()[0] for line in first] == [line.split()[0] for line in second]
    moved = sum(abs(int(line.split()[0]) - number) for number, line in enumerate(first)) / LINES
    assert moved == pytest.approx(LINES / 3, rel=0.05)
    assert shuffled(corpus, tmp_path, seed=2)[0] != first


@pytest.mark.parametrize("memory", [2000, 20_000, 1 << 30])
def test_the_order_does_not_depend_on_the_memory(corpus: list[str], tmp_path: Path, memory: int) -> None:
    assert shuffled(corpus, tmp_path, memory=memory) == shuffled(corpus, tmp_path)


def test_unequal_files_leave_nothing(corpus: list[str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    with pytest.raises(InputError, match="has 2 lines but"):
        shuffle(corpus, [str(tmp_path / "out.a"), str(tmp_path / "out.b")], seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_killed_one_leaves_nothing_that_stays(corpus: list[str], tmp_path: Path) -> None:
    """Its text lies in files without names, and the next one removes its unfinished output."""
    os.mkfifo(tmp_path / "pipe")
    output = [str(tmp_path / "out.a")]
    arguments = ["prepare", "shuffle", str(tmp_path / "pipe"), "--seed", "1", "--output", *output]
    command = [sys.executable, "-m", "nmt_core", *arguments]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    with open(tmp_path / "pipe", "wb") as stream:
        stream.write(b"a line\n" * 100_000)  # more than a pipe holds: some are in files now
        process.kill()
        process.wait()
    os.unlink(tmp_path / "pipe")
    assert shuffle(corpus[:1], output, seed=1) == LINES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "out.a"]


def test_devices_have_their_temporary_files_elsewhere(
    corpus: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[str] = []
    make = tempfile.TemporaryFile

    def noted(dir: str) -> IO[bytes]:
        folders.append(dir)
        return make(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    assert shuffle(corpus[:1], ["/dev/null"], seed=1) == LINES
    assert set(folders) == {tempfile.gettempdir()}
