"""``decode`` and ``score`` refuse lines of too many words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

pytestmark = pytest.mark.usefixtures("quick_processes")
LINES = ["a man", "men of a . group of men of", "", "a a a a a a a a a", "of"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    source = Vocabulary([*SPECIAL_WORDS, "a", "group", "of", "men", "."])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "hommes"])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    save_model(str(folder / "model"), new_model(config, 7, 5, seed=1), source, target, FolderConfig(model=config))
    (folder / "long").write_text("".join(f"{line}\n" for line in LINES))
    return folder


def decode(folder: Path, name: str, output: Path, *options: str) -> list[str]:
    places = ["--model", str(folder / "model"), "--input", str(folder / name), "--output", str(output)]
    assert main(["decode", *places, "--device", "cpu", "--quiet", *options]) == 0
    return output.read_text().splitlines()


def test_a_long_line_is_refused_with_its_number(folder: Path, tmp_path: Path, error_line: Callable[..., str]) -> None:
    command = ["decode", "--model", str(folder / "model"), "--input", str(folder / "long"), "--output"]
    for options in ([], ["--jobs", "2"]):
        output = tmp_path / "out"
        line = error_line(main, [*command, str(output), "--device", "cpu", "--quiet", "--max-words", "7", *options])
        assert "long:2: has 8 words; up to 7 are taken" in line
        assert not output.exists()
    assert decode(folder, "long", tmp_path / "out", "--max-words", "9") == decode(folder, "long", tmp_path / "same")


@pytest.mark.parametrize(("long", "line"), [("source", 2), ("target", 3)])
def test_score_names_the_side(
    folder: Path, tmp_path: Path, error_line: Callable[..., str], long: str, line: int
) -> None:
    (tmp_path / "source").write_text("a\na of a\nof\n" if long == "source" else "a\na of\nof\n")
    (tmp_path / "target").write_text("un\nun un\nun\n" if long == "source" else "un\nun\nun un un\n")
    command = ["score", "--model", str(folder / "model"), "--quiet", "--device", "cpu"]
    sides = [str(tmp_path / "source"), str(tmp_path / "target")]
    problem = f"{tmp_path / long}:{line}: has 3 words; up to 2 are taken"
    assert problem in error_line(main, [*command, "--max-words", "2", *sides])
    assert main([*command, "--max-words", "3", *sides]) == 0
    (tmp_path / "pairs").write_text("a\tun\na un\n")
    line = error_line(main, [*command, str(tmp_path / "pairs")])
    assert line == f"nmt-core score: {tmp_path}/pairs:2: expected source, tab, target, as TARGET is not given"
