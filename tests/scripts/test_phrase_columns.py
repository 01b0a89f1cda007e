"""``phrase_columns`` and its two programs: what is held out, how it is counted, other columns, a small run."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main as nmt_core
from nmt_core.model_directory.loaded_model import load_model
from smt_bridge.nbest.formats import read_entries

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "en-fr"
SETS = {"val": "dev", "test_2016_flickr": "test", "test_2017_mscoco": "test"}
LINE = "{} ||| {} ||| 0.5 0.25 1 0.125 ||| 0-0 ||| 2 1 {} ||| |||"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [str(ROOT / "scripts" / "experiments" / "phrase_column" / script), *map(str, arguments)]
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
    halves = [{line.split(" ||| ")[0] for line in lines_of(split / f"half-{half}.gz")} for half in (0, 1)]
    assert halves[0].isdisjoint(halves[1])
    assert halves[0] | halves[1] == set(forward)
    assert min(map(len, halves)) > 900
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


def test_other_columns_are_those_of_their_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("en").write_text("</s>\n<unk>\na\nb\nc\n")
    Path("fr").write_text("</s>\n<unk>\nx\ny\n")
    sizes = ["hidden=4", "embedding=3", "maxout=3", "initialisation=glorot"]
    sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    for seed, name in enumerate(("plain", "other")):
        words = ["--source-vocab", "en", "--target-vocab", "fr", "--seed", str(seed)]
        assert nmt_core(["init", name, "--preset", "rnnencdec-cho2014", *words, *sets]) == 0
    Path("table").write_text("\n".join([LINE.format("a", "x", 2), LINE.format("b c", "y x", 1)]) + "\n")
    Path("source").write_text("a b c\n")
    Path("list").write_text("0 ||| x |0-0| y x |1-2|  ||| LM0= -1 ||| -1\n")
    pairs = [([2, 0], [2]), ([3, 4, 0], [3, 2])]  # in the words' numbers
    halves = [hashlib.blake2b(source, digest_size=8).digest() for source in (b"a", b"b c")]
    read = [int.from_bytes(digest, "big") // 300 % 2 for digest in halves]

    def logs(name: str, temperature: float = 1.0) -> list[float]:
        """ln p of both pairs."""
        model = load_model(name).model
        batch = pad_pairs([(source[:-1], target) for source, target in pairs])
        words = (model.generator.log_probs(model.known_targets(batch).readouts_BTL) / temperature).log_softmax(2)
        return [
            float(sum(words[row, t, w] for t, w in enumerate([*target, 0]))) for row, (_, target) in enumerate(pairs)
        ]

    models = ("--model", "plain", "--longer", "other", "--sentences", "other", "--halves", "plain", "other")
    done = run("phrase_column_variants.py", "--table", "table", *models, "--list", "list=new=source")
    assert done.returncode == 0, done.stderr
    (entry,) = read_entries("new")
    found = {name: value for name, (value,) in entry.features.items()}
    plain, other = logs("plain"), logs("other")
    by_half = list(zip(plain, other, strict=True))
    expected = {
        "Column0": sum(plain),
        "Words0": plain[0] / 2 + plain[1] / 3,
        "Sharp0": sum(logs("plain", 0.5)),
        "Flat0": sum(logs("plain", 2.0)),
        "Once0": plain[1],
        "Often0": plain[0],
        "Longer0": sum(other),
        "LongerMean0": sum(plain + other) / 2,
        "Mean0": sum(plain + other) / 2,
        "Mixture0": sum(math.log((math.exp(one) + math.exp(two)) / 2) for one, two in by_half),
        "Read0": sum(row[half] for row, half in zip(by_half, read, strict=True)),
        "Unread0": sum(row[1 - half] for row, half in zip(by_half, read, strict=True)),
        "Halves0": sum(plain + other) / 2,
    }
    assert list(found) == ["LM0", *expected]
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 6) for value in expected.values()}) > 8
    rows = done.stdout.splitlines()
    assert rows[2] == f"| Column0 | {sum(plain) / 5:.3f} |"
    assert rows[-1] == "2 distinct pairs."
    done = run("phrase_column_variants.py", "--table", "table", "--model", "nowhere", "--list", "list=newer=source")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not Path("newer").exists()


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


@pytest.mark.long
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
    before = done.stdout
    done = run("phrase_columns", *options, "--variants")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("+ both columns") < done.stdout.index("| Unread0 |") < done.stdout.index("| + Unread0 |")
    assert "the same, trained on for as long again, ln p(target \\| source)" in titles(done.stdout)
    assert titles(done.stdout)[-1] == "Halves0 in place of the table's scores"
    assert before.splitlines()[-1] in done.stdout
    again = run("phrase_columns", *options, "--variants")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert again.stderr == "== tuning on val\n"
