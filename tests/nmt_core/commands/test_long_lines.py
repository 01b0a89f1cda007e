"""``decode`` and ``score`` refuse lines of too many words, or ``decode`` translates them in pieces."""

from __future__ import annotations

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
PIECES = ["a man", "men of a .", "group of men of", "", "a a a a", "a a a a", "a", "of"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    source = Vocabulary([*SPECIAL_WORDS, "a", "group", "of", "men", "."])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "hommes"])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    save_model(str(folder / "model"), new_model(config, 7, 5, seed=1), source, target, FolderConfig(model=config))
    (folder / "long").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "pieces").write_text("".join(f"{line}\n" for line in PIECES))
    return folder


def decode(folder: Path, name: str, output: Path, *options: str) -> list[str]:
    places = ["--model", str(folder / "model"), "--input", str(folder / name), "--output", str(output)]
    assert main(["decode", *places, "--device", "cpu", "--quiet", *options]) == 0
    return output.read_text().splitlines()


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2", "--window", "2")], ids=["one", "jobs"])
def test_a_long_line_is_translated_in_pieces(folder: Path, tmp_path: Path, jobs: tuple[str, ...]) -> None:
    options = ("--max-words", "4,split", *jobs)
    parts = decode(folder, "pieces", tmp_path / "pieces")
    joined = [" ".join(filter(None, parts[begin:end])) for begin, end in ((0, 1), (1, 3), (3, 4), (4, 7), (7, 8))]
    assert decode(folder, "long", tmp_path / "long", *options) == joined
    scores = [float(line.split("\t")[0]) for line in decode(folder, "pieces", tmp_path / "sums", "--scores")]
    scored = decode(folder, "long", tmp_path / "scored", *options, "--scores")
    assert [line.split("\t")[1] for line in scored] == joined
    assert float(scored[3].split("\t")[0]) == pytest.approx(sum(scores[4:7]), abs=1e-4)


def test_a_long_line_is_refused_with_its_number(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["decode", "--model", str(folder / "model"), "--input", str(folder / "long"), "--output"]
    for options in ([], ["--jobs", "2"]):
        output = tmp_path / "out"
        assert main([*command, str(output), "--device", "cpu", "--quiet", "--max-words", "7", *options]) == 2
        assert "long:2: has 8 words; up to 7 are taken" in capsys.readouterr().err
        assert not output.exists()
    assert decode(folder, "long", tmp_path / "out", "--max-words", "9") == decode(folder, "long", tmp_path / "same")


@pytest.mark.parametrize(
    "option", [("--nbest", "2"), ("--search", "samples=2"), ("--alignments", "x"), ("--prefix", "p")]
)
def test_pieces_make_one_translation_only(
    folder: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    (folder / "p").write_text("")
    options = [str(folder / "p") if one == "p" else one for one in option]
    command = ["decode", "--model", str(folder / "model"), "--input", str(folder / "long"), "--max-words", "7,split"]
    assert main([*command, *options]) == 2
    assert f"leave out {option[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(("long", "line"), [("source", 2), ("target", 3)])
def test_score_names_the_side(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], long: str, line: int
) -> None:
    (tmp_path / "source").write_text("a\na of a\nof\n" if long == "source" else "a\na of\nof\n")
    (tmp_path / "target").write_text("un\nun un\nun\n" if long == "source" else "un\nun\nun un un\n")
    command = ["score", "--model", str(folder / "model"), "--quiet", "--device", "cpu"]
    sides = [str(tmp_path / "source"), str(tmp_path / "target")]
    assert main([*command, "--max-words", "2", *sides]) == 2
    assert f"{tmp_path / long}:{line}: has 3 words; up to 2 are taken" in capsys.readouterr().err
    assert main([*command, "--max-words", "3", *sides]) == 0
