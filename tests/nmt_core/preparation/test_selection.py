"""Selection of what is like a domain, against NumPy and KenLM's module alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.commands.main import main
from nmt_core.kenlm import NgramModel
from nmt_core.preparation import selection
from nmt_core.preparation.selection import Keep, Selection, SideModels, select
from tests.without import ROOT

kenlm = pytest.importorskip("kenlm")
WORDS = ("a", "dog", "runs", "market", "falls")
LINES = 300


def write_bigrams(path: Path, draw: random.Random) -> None:
    unigrams = [f"{-draw.random():.3f}\t{word}\t{-draw.random():.3f}" for word in ("<unk>", "<s>", "</s>", *WORDS)]
    bigrams = [f"{-draw.random():.3f}\t{first} {second}" for first in WORDS for second in draw.sample(WORDS, 2)]
    counts = f"ngram 1={len(unigrams)}\nngram 2={len(bigrams)}\n"
    sections = ["\\data\\\n" + counts, "\\1-grams:", *unigrams, "", "\\2-grams:", *bigrams, "", "\\end\\", ""]
    path.write_text("\n".join(sections))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = random.Random(3)
    for language in ("en", "fr"):
        for kind in ("in", "general"):
            write_bigrams(tmp_path / f"{kind}.{language}", draw)
        lines = [" ".join(draw.choices([*WORDS, "elsewhere"], k=draw.randint(0, 4))) for _ in range(LINES)]
        (tmp_path / f"text.{language}").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selection, "LINES", 7)
    return tmp_path


def run(languages: list[str], keep: str) -> int:
    files = {name: [f"{name}.{language}" for language in languages] for name in ("text", "out", "in", "general")}
    options = ["--output", *files["out"], "--in-domain", *files["in"], "--general", *files["general"]]
    return main(["prepare", "select", *files["text"], *options, "--keep", keep])


def differences(language: str) -> np.ndarray:
    """Cross-entropies of every line by KenLM, in-domain less general, in bits a word."""
    lines = Path(f"text.{language}").read_text().splitlines()
    models = [kenlm.Model(f"{kind}.{language}") for kind in ("in", "general")]
    return np.array([-np.subtract(*(m.score(line) for m in models)) / np.log10(2) / (len(line.split()) + 1)
                     for line in lines])  # fmt: skip


@pytest.mark.parametrize("languages", [["fr"], ["en", "fr"]])
@pytest.mark.parametrize("keep", ["0.3", "1", "17", "101words", "5000", "4words"])
def test_what_is_kept_is_what_numpy_and_kenlm_keep(folder: Path, languages: list[str], keep: str) -> None:
    order = np.argsort(sum(map(differences, languages)).round(9), kind="stable")  # of equal lines the first
    words = np.array([len(line.split()) for line in Path(f"text.{languages[-1]}").read_text().splitlines()])
    if keep.endswith("words"):
        most = int(np.searchsorted(np.cumsum(words[order]), int(keep.removesuffix("words")), side="right"))
    else:
        most = round(float(keep) * LINES) if "." in keep else int(keep)
    assert run(languages, keep) == 0
    for language in languages:
        lines = Path(f"text.{language}").read_text().splitlines()
        assert Path(f"out.{language}").read_text().splitlines() == [lines[place] for place in sorted(order[:most])]


def test_line_ends_of_windows_are_no_part_of_a_word(folder: Path) -> None:
    assert run(["en"], "0.3") == 0
    kept = Path("out.en").read_bytes()
    Path("text.en").write_bytes(Path("text.en").read_bytes().replace(b"\n", b"\r\n"))
    assert run(["en"], "0.3") == 0
    assert Path("out.en").read_bytes() == kept.replace(b"\n", b"\r\n")


def test_the_report_is_a_histogram_of_all_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fr"], "0.3") == 0
    _, *rows, kept = capsys.readouterr().err.splitlines()
    scores = np.sort(differences("fr"))
    for row in rows:
        low, _, high, lines = row.split()[:4]
        assert int(lines) == np.sum((scores >= float(low)) & (scores < float(high)))
    assert sum(int(row.split()[3]) for row in rows) == LINES
    words = len(Path("out.fr").read_text().split())
    assert kept == f"kept 90 of 300 lines ({words} words), to {scores[89]:.4f} bits a word"


def test_how_much_is_kept_and_what_was_is_said_in_numbers() -> None:
    selection, kind = Selection(), [("score", "<f8"), ("words", "<i8")]
    selection.add_read(np.array([(-10.5, 1), *[(0.5, 2)] * 1998, (10.0, 3)], dtype=kind))
    selection.add_kept(np.array([(-10.5, 1), (0.5, 1233)], dtype=kind))
    rows = ["  bits a word        lines      %", " -inf to -10.0            1   0.05"]
    rows += [f"  0.0 to  1.0        1,998  99.90  {'#' * 100}", " 10.0 to  inf            1   0.05"]
    kept = "kept 2 of 2,000 lines (1,234 words), to 0.5000 bits a word"
    assert selection.report().splitlines() == [*rows, kept]
    found = [Keep.parse(text) for text in ("0.3", "1e-3", "1", "50000", "7words")]
    assert found == [(0.3, "share"), (0.001, "share"), (1, "lines"), (50000, "lines"), (7, "words")]
    for wrong in ("0", "1.0", "0.0", "-1", "0words", "1.5words", "words", "nan", "x"):
        with pytest.raises(ConfigError, match=f"^--keep {wrong}: expected a share such as 0"):
            Keep.parse(wrong)


def test_memory_does_not_grow_with_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SideModels, "difference", lambda _, words: len(words) / 7)
    models = [SideModels(*(NgramModel(f"{kind}.fr") for kind in ("in", "general")))]
    peaks = []
    for lines in (2_000, 20_000):
        Path("long").write_text("a dog runs\na b\n" * (lines // 2))
        tracemalloc.start()
        select(["long"], ["out"], models, Keep(0.3, "share"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_what_cannot_be_selected_is_one_line_and_leaves_nothing(folder: Path, error_line: Callable[..., str]) -> None:
    models = ["--output", "out", "--in-domain", "in.fr", "--general", "general.fr", "--keep"]
    two = ["text.en", "text.fr", "--output", "out.en", "out.fr", "--in-domain", "in.en", "in.fr", "--general", "x"]
    cases = {
        "--keep 1.5: expected a share such as 0.3, a number of lines, or Nwords": ["text.fr", *models, "1.5"],
        "nothing is kept of 300 lines of text.fr; keep more": ["text.fr", *models, "0.001"],
        "--general names 1 file for 2 inputs; give one for each": [*two, "--keep", "9"],
        "--in-domain names 1 file for 2 inputs; give one for each": [*two[:-3], "--general", "x", "y", "--keep", "9"],
        "--output names 1 file for 2 inputs; give one for each": [*two[:4], *two[5:], "--keep", "9"],
        "there is no such n-gram model": ["text.fr", *models[:5], "x", "--keep", "9"],
        "pipe: is a pipe; expected an ordinary file": ["pipe", *models, "9"],
        "latin:2: not UTF-8": ["latin", *models, "1"],
    }
    Path("latin").write_bytes(b"a\n\xe9\n")
    os.mkfifo("pipe")
    before = sorted(folder.iterdir())
    for message, arguments in cases.items():
        assert message in error_line(main, ["prepare", "select", *arguments])
    assert sorted(folder.iterdir()) == before


def test_a_folder_is_made_and_an_early_end_of_the_reader_is_no_full_disk(folder: Path) -> None:
    options = "--in-domain in.fr --general general.fr --keep 250"
    assert main(f"prepare select text.fr --output new/out {options}".split()) == 0
    assert len(Path("new/out").read_text().splitlines()) == 250
    Path("long").write_text("a dog runs\n" * 60_000)
    program = f"set -o pipefail; {sys.executable} -m nmt_core prepare select long --output - {options}0000 | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(["bash", "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 141 and "cannot be written" not in ended.stderr


def test_a_file_that_changes_between_the_passes_is_an_error(folder: Path) -> None:
    models = [SideModels(NgramModel("in.fr"), NgramModel("general.fr"))]
    content, write = Path("text.fr").read_text(), Path("text.fr").write_text
    for other in ("", content + "a\n", content + "a\n" * 8):
        with pytest.raises(InputError, match=r"^text\.fr: was changed while it was read$"):
            select(["text.fr"], ["out"], models, Keep(0.3, "share"), lambda n, to=other: n < 7 and write(to))
        assert not Path("out").exists()
        write(content)


def test_scores_that_do_not_fit_are_said_of_their_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [SideModels(NgramModel("in.fr"), NgramModel("general.fr"))]
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/temporary")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda dir: os.stat(f"{dir}/absent"))
    for output, place in (("new/out", f"{folder}/new"), ("/dev/null", "/temporary")):
        with pytest.raises(NmtError, match=rf"^{place}: cannot be written \(No such file or directory\)$"):
            select(["text.fr"], [output], models, Keep(3, "lines"))
