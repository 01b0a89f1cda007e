"""``scripts/phrase_columns`` and ``held_out_phrases.py``: what is held out, how it is counted, and a small run."""

from __future__ import annotations

import gzip
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "en-fr"
SETS = {"val": "dev", "test_2016_flickr": "test", "test_2017_mscoco": "test"}
LINE = "{} ||| {} ||| 0.5 0.25 1 0.125 ||| 0-0 ||| 2 1 {} ||| |||"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [str(ROOT / "scripts" / script), *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, check=False)


def lines_of(path: Path) -> list[str]:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode().splitlines()


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A table of 2,000 sources with two targets each, split."""
    lines = [
        LINE.format(f"s{number}", target, 1 + (target == "t u")) for number in range(2000) for target in ("t", "t u")
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    done = run("held_out_phrases.py", "split", tmp_path / "table", tmp_path / "pairs")
    assert done.returncode == 0, done.stderr
    return tmp_path / "pairs"


def test_pairs_held_out_are_in_no_training_text(split: Path) -> None:
    held, seen = (lines_of(split / f"{name}.source") for name in ("held", "seen"))
    assert held[::2] == held[1::2]  # all pairs of a source
    assert 2 <= len(held) <= 40
    forward = [line.split(" ||| ")[0] for line in lines_of(split / "forward.gz")]
    assert len(forward) + len(held) == 4000
    assert set(forward).isdisjoint(held)
    assert set(seen) <= set(forward)
    reverse = [line.removesuffix(" |||").split(" ||| ")[::-1] for line in lines_of(split / "reverse.gz")]
    assert [" ||| ".join(pair) + " |||" for pair in reverse] == lines_of(split / "forward.gz")
    assert lines_of(split / "held.moses") == ["1 0.125", "2 0.125"] * (len(held) // 2)


def test_means_are_per_word_and_end(split: Path) -> None:
    count = {name: len(lines_of(split / f"{name}.source")) for name in ("held", "seen")}
    (split / "m.held").write_text("-1\n-6\n" * (count["held"] // 2))
    (split / "m.seen").write_text("-1\n" * count["seen"])
    done = run("held_out_phrases.py", "table", split, f"M={split}/m", "--reverse", f"R={split}/m")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[2:]
    assert rows[0] == "| M, ln p(target \\| source) | -0.400 | -0.500 | -2.000 | -1.400 |"  # 2 and 3 words and ends
    assert rows[1].endswith("| -0.832 | -1.040 | -0.693 | -0.832 |")
    assert rows[2] == "| R, ln p(source \\| target) | -0.500 | -0.500 | -3.000 | -1.750 |"
    assert rows[4] == f"{count['held']} pairs held out, {count['held'] // 2} of them seen once."


def test_a_table_without_counts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("a ||| b ||| 1 1 1 1\n")
    done = run("held_out_phrases.py", "split", tmp_path / "table", tmp_path / "pairs")
    assert done.returncode == 2
    assert done.stderr.startswith(f"held_out_phrases: {tmp_path}/table:1: expected 'source ||| target ||| four scores")
    assert list((tmp_path / "pairs").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--data", "nowhere"), "nowhere/val.tok.en.gz is missing; give --data and --moses"),
        (("--dada", "here"), "there is no option --dada; see --help"),
        (("--data",), "--data needs a value"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    done = run("phrase_columns", *arguments)
    assert (done.returncode, done.stderr) == (2, f"phrase_columns: {told}\n")


def small_lists(folder: Path) -> None:
    """12 sentences of the example; hypotheses of one phrase each: the reference, and it without its last word."""
    for split, name in SETS.items():
        for form in (".tok.en", ".tok.fr", ".fr"):
            text = "".join(f"{line}\n" for line in lines_of(EXAMPLE / "data" / f"{name}{form}.gz")[:12])
            (folder / f"{split}{form}.gz").write_bytes(gzip.compress(text.encode()))
        lists = []
        pairs = zip(*(lines_of(folder / f"{split}.tok.{language}.gz") for language in ("en", "fr")), strict=True)
        for number, (source, target) in enumerate(pairs):
            for place, text in enumerate((target, target.rpartition(" ")[0], "un")):
                values = f"LexicalReordering0= -1 0 0 -1 0 0 Distortion0= 0 LM0= {-place} WordPenalty0= -1"
                values += " PhrasePenalty0= 1 TranslationModel0= -1 -2 -3 -4"
                marks = f"|0-{len(source.split()) - 1}|"
                lists.append(f"{number} ||| {text} {marks}  ||| {values} ||| {-place}\n")
        (folder / f"{split}.nbest100.segmented.gz").write_bytes(gzip.compress("".join(lists).encode()))


def titles(tables: str) -> list[str]:
    """The first cells of all rows."""
    return [line.removeprefix("| ").split(" | ")[0] for line in tables.splitlines() if line.startswith("| ")]


@pytest.mark.slow
@pytest.mark.timeout(3600)  # thirty processes that load PyTorch, on a busy machine
def test_a_small_table_goes_all_the_way_once(tmp_path: Path) -> None:
    small_lists(tmp_path)
    with gzip.open(EXAMPLE / "moses" / "phrase-table.gz", "rb") as table:
        (tmp_path / "phrase-table.gz").write_bytes(gzip.compress(b"".join(itertools.islice(table, 6000))))
    options = ("--data", tmp_path, "--moses", tmp_path, "--out", tmp_path / "out", "--hypotheses", "2")
    lists = tmp_path / "out" / "first-2-forward"
    done = run("phrase_columns", *options, "--forward")
    assert done.returncode == 0, done.stderr
    assert len(lines_of(lists / "val.rich.gz")) == 24
    assert titles(done.stdout)[-3:] == [
        "+ column, target given source",
        "without the table's four scores",
        "columns in their place",
    ]
    done = run("phrase_columns", *options)
    assert done.returncode == 0, done.stderr
    assert "training forward" not in done.stderr
    assert titles(done.stdout)[1] == "RNNencdec, trained on phrases, ln p(target \\| source)"
    assert titles(done.stdout)[-3] == "+ both columns"
    again = run("phrase_columns", *options)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert again.stderr == "== tuning on val\n"
