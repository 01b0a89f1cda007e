"""The commands of README and tutorial run as they are written.

On the beginning of the example system, and with untrained models.
"""

from __future__ import annotations

import gzip
import shutil
import socket
import sys
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, blocks, section
from tests.docs.newcomer import PHRASES, SENTENCES, run, run_here

pytestmark = pytest.mark.slow
README = ROOT / "README.md"


def test_a_phrase_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run_here("".join(blocks(section(README, "1. Neural scores in a phrase table"))))
    assert len(gzip.decompress((folder / "runs" / "nmt-table.gz").read_bytes()).splitlines()) == PHRASES
    assert "num-features=5" in (folder / "runs" / "nmt.ini").read_text()
    assert (folder / "runs" / "table.html").exists()


def test_lists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run_here("".join(blocks(section(README, "2. N-best reranking"))))
    assert len((folder / "runs" / "test.best.fr").read_text().splitlines()) == SENTENCES
    assert b"InNmt0= 1" in gzip.decompress((folder / "runs" / "test.merged.gz").read_bytes())


def test_a_server(folder: Path) -> None:
    pytest.importorskip("grpc")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    text = section(README, "3. gRPC").replace("50551", port).replace("python -", f"{sys.executable} -")
    translation, *table, again, log_prob = run("".join(blocks(text)), folder).splitlines()
    assert len(table) == 3
    assert translation
    assert again
    assert float(log_prob) < 0


def test_standalone(folder: Path) -> None:
    output = run("".join(blocks(section(README, "4. Decoding and scoring on the command line"))), folder).splitlines()
    assert len(output) == 1
    assert output[0]
    assert len((folder / "runs" / "logprobs").read_text().splitlines()) == SENTENCES


def test_the_tutorial(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shutil.copy("examples/en-fr/moses/test.nbest50.gz", "runs/demo/test.rich.gz")
    shutil.copy("examples/en-fr/moses/moses.ini", "runs/demo/weights")
    *ours, in_python = blocks((ROOT / "docs" / "tutorial.md").read_text())
    assert run_here("".join(ours)).count("\n") == 1
    assert run(in_python.replace("python -", f"{sys.executable} -"), folder) == ""
    results = folder / "runs" / "tutorial"
    assert len((results / "test.fr").read_text().splitlines()) == SENTENCES
    assert (results / "report.html").exists() and "</svg>" in (results / "attention.svg").read_text()
    table = gzip.decompress((results / "nmt-table.gz").read_bytes())
    assert table and all(len(line.split(b" ||| ")[2].split()) == 5 for line in table.splitlines())


def test_unknown_words_are_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    page = (ROOT / "docs" / "unknown-words.md").read_text()
    output = run_here(next(blocks(page)).replace("vocabulary=400", "vocabulary=5")).splitlines()
    assert len(output) == 10
    assert any("<unk>" in line for line in output[:5])
    assert not any("<unk>" in line for line in output[5:])
