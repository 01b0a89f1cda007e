"""``luong``: its rows are trainings that nmt-core takes, and a small corpus goes all the way."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from nmt_core.files import open_output, write_lines
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.training.config import RunConfig

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "en-fr" / "data"


def load() -> Any:
    loader = SourceFileLoader("luong_rows", str(ROOT / "scripts" / "experiments" / "luong" / "luong"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # where dataclasses look for it
    loader.exec_module(module)
    return module


luong = load()


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["luong", *map(str, arguments)])
    return int(luong.main())


@pytest.mark.parametrize("name", [name for name, row in luong.ROWS.items() if row.model])
def test_a_row_that_is_trained_is_a_training(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(luong.Runner, "annotated", lambda self, row: ("a.s", "a.t", {}))
    monkeypatch.setattr(luong.Runner, "units", lambda self, row, split, language: f"{split}.{language}")
    runner = luong.Runner(Path("data"), Path("out"), 5)
    run_config = RunConfig.from_mapping(runner.settings(name, luong.ROWS[name]), origin="test")
    assert run_config.training.max_epochs == 5


def test_a_row_that_is_retrained_keeps_the_zeros_of_another() -> None:
    runner = luong.Runner(Path("data"), Path("out"), 4)
    settings = runner.settings("again", luong.ROWS["class-blind-80-retrained"])
    training = RunConfig.from_mapping({**settings, "model": {"type": "rnnsearch"}}, origin="test").training
    assert (training.start_from, training.keep_zeros, training.max_epochs) == ("out/class-blind-80", True, 2)
    assert not runner.settings("again", luong.ROWS["longer"])["training"]["keep_zeros"]  # which has none


def test_rows_that_others_need_are_there_and_come_before_them() -> None:
    seen: set[str] = set()
    for name, row in luong.ROWS.items():
        assert {row.of, row.together, row.beside} - {""} <= seen, name
        assert row.model or row.of, name
        seen.add(name)


def test_unknown_words_in_the_order_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Vocabulary(["</s>", "<unk>", "a", "b"]).save(str(tmp_path / "source.vocab"))
    (tmp_path / "lexicon").write_text("Rouge Rot 1.0\n")
    with open_output(str(tmp_path / "test_2016_flickr.tok.en.gz")) as stream:
        write_lines(stream, ["a Rot b Neu", "a b"])
    runner = luong.Runner(tmp_path, tmp_path, 5)
    monkeypatch.setattr(runner, "lexicon", lambda language: tmp_path / "lexicon")
    found = runner.in_order(["x <unk> <unk> <unk> y", "<unk> z"], tmp_path)
    assert list(found) == ["x Rouge Neu y", "z"]


def test_parts_of_words_are_those_of_both_languages_and_are_words_again(tmp_path: Path) -> None:
    texts = {"train.tok.en": ["wow"] * 9, "train.tok.de": ["low"] * 3, "val.tok.de": ["wow low"]}
    for name, lines in texts.items():
        with open_output(str(tmp_path / f"{name}.gz")) as stream:
            write_lines(stream, lines)
    runner, row = luong.Runner(tmp_path, tmp_path / "out", 5), luong.Row("", language="de", merges=2)
    (parts,) = Path(runner.units(row, "val", "de")).read_text().splitlines()
    assert parts == "wow l@@ ow"
    assert runner.subwords(row).undo(parts) == "wow low"
    assert runner.units(luong.Row("", language="de"), "val", "de") == str(tmp_path / "val.tok.de.gz")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A little of the example, with the names that the script wants."""
    folder = tmp_path / "data"
    folder.mkdir()
    for split, (name, count) in {"train": ("train", 200), "val": ("dev", 20), "test_2016_flickr": ("test", 20)}.items():
        for language, form in itertools.product(("en", "fr"), (".tok", "")):
            with gzip.open(EXAMPLE / f"{name}.tok.{language}.gz", "rt") as lines:
                text = "".join(itertools.islice(lines, count))
            with gzip.open(folder / f"{split}{form}.{language}.gz", "wt") as copy:
                copy.write(text)
    return folder


@pytest.mark.long
@pytest.mark.timeout(900)  # processes that load PyTorch, on a busy machine
def test_rows_are_made_once(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    common = ("--data", corpus, "--out", tmp_path / "out", "--epochs", 1)
    assert run(monkeypatch, *common, "reverse") == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["row"] for line in lines] == ["base", "reverse"]  # the row beside which it is comes first
    assert 0 < lines[1]["p_bleu"] <= 1
    assert run(monkeypatch, *common, "reverse") == 0
    assert capfd.readouterr().out == ""
    assert run(monkeypatch, *common, "--table") == 0
    table = capfd.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == ["| `base`", "| `reverse`"]
    assert run(monkeypatch, *common, "--lengths", "base", "reverse") == 0
    table = capfd.readouterr().out.splitlines()
    assert sum(int(line.split(" | ")[1]) for line in table[2:]) == 20
