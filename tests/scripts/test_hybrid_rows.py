"""``hybrid_rows``: from named model folders to the rows of a table, and what it refuses."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.nbest.formats import read_entries
from tests.nmt_core.arpa import ARPA

ROOT = Path(__file__).parents[2]
WORDS = {"en": ["a", "group", "men", "."], "fr": ["un", "groupe", "hommes", "."]}
SETS = ("val", "test_2016_flickr", "test_2017_mscoco")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [str(ROOT / "scripts" / "experiments" / "merged_lists" / "hybrid_rows"), *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, check=False)


def small_files(folder: Path) -> None:
    """Three sets of eight sentences, Moses' lists of three hypotheses, three models."""
    sentences = [[0, 1, 3], [2, 3], [0, 1, 2, 3], [1, 2], [0, 3], [1, 3], [0, 2, 3], [2, 1, 0, 3]]
    for split in SETS:
        lists = []
        for number, places in enumerate(sentences):
            target = [WORDS["fr"][place] for place in places]
            for place, text in enumerate((target, target[:-1], [*target, "."])):
                values = f"LM0= {-place} WordPenalty0= {-len(text)}"
                lists.append(f"{number} ||| {' '.join(text)}  ||| {values} ||| {-place}\n")
        (folder / f"{split}.nbest100.gz").write_bytes(gzip.compress("".join(lists).encode()))
        for language in ("en", "fr"):
            lines = "".join(" ".join(WORDS[language][place] for place in places) + "\n" for places in sentences)
            for form in (f".tok.{language}", f".{language}"):
                (folder / f"{split}{form}.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "lm.fr.arpa.gz").write_bytes(gzip.compress(ARPA.encode()))
    for language, words in WORDS.items():
        (folder / f"{language}.vocab").write_text("".join(f"{word}\n" for word in ("</s>", "<unk>", *words)))
    for seed, (name, source, target) in enumerate((("a", "en", "fr"), ("b", "en", "fr"), ("reverse", "fr", "en"))):
        sizes = [f"model.{size}" for size in ("hidden=4", "embedding=3", "maxout=3", "alignment=3")]
        sets = [argument for size in (*sizes, "model.initialisation=glorot") for argument in ("--set", size)]
        vocabularies = ["--source-vocab", f"{folder}/{source}.vocab", "--target-vocab", f"{folder}/{target}.vocab"]
        made = ["init", f"{folder}/{name}", "--preset", "rnnsearch", *vocabularies, "--seed", str(seed)]
        assert nmt_core([*made, *sets]) == 0


@pytest.mark.long
@pytest.mark.timeout(1800)  # a dozen processes that load PyTorch, on a busy machine
def test_a_small_table_of_an_ensemble_goes_all_the_way_once(tmp_path: Path) -> None:
    small_files(tmp_path)
    out, ensemble = tmp_path / "out", f"{tmp_path}/a,{tmp_path}/b"
    options = ("--data", tmp_path, "--moses", tmp_path, "--out", out, "--model", ensemble, "--hypotheses", 2)
    done = run(*options, "--reverse", tmp_path / "reverse", "--runs", 1)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ")[0].removeprefix("| ") for line in done.stdout.splitlines()[2:]]
    assert rows == ["FirstMoses0 alone", "FirstNmt0 alone", "merged", "+ reverse model"]
    assert (out / "results.md").read_text() == done.stdout
    entries = list(read_entries(str(out / "val.rich.gz")))
    assert sum(entry.features["InMoses0"][0] for entry in entries) == 16
    assert {"NMT0", "NMTreverse0", "WordCount0"} <= entries[0].features.keys()
    again = run(*options, "--reverse", tmp_path / "reverse", "--runs", 1)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "search" not in again.stderr
    for split in SETS:
        (tmp_path / f"{split}.moses2.gz").write_bytes((tmp_path / f"{split}.nbest100.gz").read_bytes())
    more = run(*options[:4], "--out", tmp_path / "more", *options[6:], "--list", f"moses2={tmp_path}", "--runs", 1)
    assert more.returncode == 0, more.stderr
    entries = list(read_entries(str(tmp_path / "more" / "val.rich.gz")))
    assert sum(entry.features["InMoses20"][0] for entry in entries) == 24
    assert {"TotalMoses20", "RankMoses20"} <= entries[0].features.keys()
