"""Models of the library transformers where the bridge names a model: the numbers of the library alone."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from smt_bridge.models import SearchOptions, open_model
from smt_bridge.nbest.formats import read_entries
from tests.random_marian import log_prob, write_marian
from tests.small_moses import write_moses_system
from tests.smt_bridge.hybrid.small_hybrid import translate

pytest.importorskip("transformers", reason="needs transformers (extra hf)")
SOURCES, LISTS = ["the woman &apos;s house ,", "a man"], [["l&apos; eau", "la femme"], ["un homme", ""]]
BARE = [("the woman's house,", "l'eau"), ("the woman's house,", "la femme"), ("a man", "un homme"), ("a man", "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("hf") / "marian-en-fr")


def test_tables_and_lists_have_the_library_s_numbers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bare = [log_prob(folder, *pair) for pair in BARE]
    Path("table").write_text(
        "a man ||| un homme ||| 1 2 ||| 0-0\nthe woman &apos;s house , ||| la femme ||| 1 2 ||| 0-0\n"
    )
    options = ["--scorer", f"hf:{folder}", "--quiet"]
    assert main(["rescore-table", "table", "--output", "scored.gz", *options, "--jobs", "1"]) == 0
    scored = [line.split(" ||| ") for line in gzip.decompress(Path("scored.gz").read_bytes()).decode().splitlines()]
    found = [math.log(float(fields[2].split()[-1])) for fields in scored]
    assert found == pytest.approx([bare[2], bare[1]], abs=1e-4)
    Path("source").write_text("".join(f"{text}\n" for text in SOURCES))
    Path("list").write_text(
        "".join(f"{n} ||| {text} ||| LM0= -1 ||| -1\n" for n, texts in enumerate(LISTS) for text in texts)
    )
    command = ["add-features", "--nbest", "list", "--source", "source", "--output", "rich", "--jobs", "1"]
    assert main([*command, *options]) == 0
    column = [entry.features["NMT0"][0] for entry in read_entries("rich")]
    assert column == pytest.approx(bare, abs=1e-4)
    own, none = open_model(f"hf:{folder}", search=SearchOptions(beam=3, nbest=2)).nbest(["a man", ""])
    assert (len(own), len(none)) == (2, 0)


def test_a_live_hybrid_searches_and_scores_with_it(
    moses: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dev").write_text("ab cd\ncd\n")
    write_moses_system(tmp_path)
    lists = f"--moses-ini moses.ini --model hf:{folder} --feature nmt:hf:{folder} --lists moses:2,nmt:3 --beam 4"
    assert translate(moses, *lists.split(), "--input", "dev", "--nbest-output", "list", "--output", "out") == 0
    entries = list(read_entries("list"))
    assert {entry.sentence for entry in entries if entry.features["InNmt0"] == (1.0,)} == {0, 1}
    assert all(entry.features["NMT0"][0] < 0 for entry in entries)


def test_doctor_says_a_directory_that_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none-en-fr").mkdir()
    assert main(["doctor", "--scorer", f"hf:{tmp_path}/none-en-fr"]) == 1
    assert "is no model of transformers" in capfd.readouterr().out
