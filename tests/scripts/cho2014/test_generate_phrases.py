"""`generate-phrases` with a real, small model."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main as nmt_core
from nmt_core.files import read_lines
from scripts.experiments.cho2014 import generate_phrases
from scripts.experiments.cho2014.__main__ import main
from scripts.experiments.cho2014.generators import GenerationOptions
from scripts.experiments.cho2014.phrase_generation import Limits
from smt_bridge.commands.main import main as smt_bridge
from tests.model_files import open_pair_scorer

TABLE = b"""deux ||| two ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 1 ||| |||
un ||| one ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 1 ||| |||
un ||| two one ||| 0.5 0.5 0.5 0.5 ||| 0-1 ||| 2 2 1 ||| |||
un deux ||| one two ||| 0.5 0.5 0.5 0.5 ||| 0-0 1-1 ||| 2 2 1 ||| |||
un un un ||| one ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 1 ||| |||
zut alors ||| one ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 1 ||| |||
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``direct`` and ``reverse``, with parameters that make some words likelier than others."""
    place = tmp_path_factory.mktemp("models")
    (place / "fr").write_text("</s>\n<unk>\nun\ndeux\n")
    (place / "en").write_text("</s>\n<unk>\none\ntwo\n")
    for name, source, target in (("direct", "fr", "en"), ("reverse", "en", "fr")):
        words = ["--source-vocab", str(place / source), "--target-vocab", str(place / target)]
        sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot"]
        sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
        assert nmt_core(["init", str(place / name), "--preset", "rnnencdec", *words, *sets]) == 0
    return place


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    path.write_bytes(TABLE)
    return path


def generate(models: Path, output: Path, *options: str) -> list[list[str]]:
    """The fields of the lines that are written."""
    command = ["generate-phrases", "--scorer", str(models / "direct"), "--output", str(output), "--quiet"]
    assert main([*command, "--jobs", "1", *options]) == 0
    return [line.decode().split(" ||| ") for line in read_lines(str(output))]


def test_a_wide_beam_finds_all_and_scores_are_those_of_the_scorer(models: Path, table: Path, tmp_path: Path) -> None:
    wide = ["--beam", "40", "--nbest", "40", "--keep", "40", "--minimum-share", "0", "--max-words", "2"]
    generate(models, tmp_path / "any", "--table", str(table), "--max-words", "1000")  # three times the source is less
    found = generate(models, tmp_path / "new", "--table", str(table), *wide)
    targets = {" ".join(words) for length in (1, 2) for words in itertools.product(("one", "two"), repeat=length)}
    got = {source: [row[1] for row in found if row[0] == source] for source in ("deux", "un", "un deux", "un un un")}
    assert set(got["un deux"]) == targets - {"one two"}
    assert set(got["un"]) == targets - {"one", "two one"}
    assert set(got["un un un"]) == targets - {"one"}
    assert not any(row[0] == "zut alors" for row in found)  # the model knows nothing of it
    scorer = open_pair_scorer([str(models / "direct")])
    for source, row_targets in got.items():
        scores = [one.log_prob for one in scorer.score([SentencePair(source, target) for target in row_targets])]
        assert scores == sorted(scores, reverse=True)
    # as a table of Moses, scored again it has the same number once more
    again = tmp_path / "again"
    command = ["rescore-table", str(tmp_path / "new"), "--scorer", str(models / "direct"), "--output", str(again)]
    assert smt_bridge([*command, "--quiet", "--jobs", "1"]) == 0
    for line in read_lines(str(again)):
        first, second = line.split(b"|||")[2].split()
        assert float(first) == pytest.approx(float(second), rel=1e-5)


@pytest.mark.parametrize("how", [[], ["--samples", "20", "--seed", "3"]])
def test_the_bytes_depend_on_no_block_and_no_part(
    models: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    options = ["--table", str(table), "--reverse-scorer", str(models / "reverse"), *how]
    generate(models, tmp_path / "one", *options)
    monkeypatch.setattr("scripts.experiments.cho2014.phrase_sources.SOURCES_AT_ONCE", 2)
    command = ["generate-phrases", "--scorer", str(models / "direct"), "--output", str(tmp_path / "three"), "--quiet"]
    for shards in (["--shards", "3"], ["--shards", "1-2"], []):
        assert main([*command, "--jobs", "1", *options, *shards]) == 0
    assert (tmp_path / "three").read_bytes() == (tmp_path / "one").read_bytes()
    record = json.loads((tmp_path / "three.json").read_bytes())
    assert record["added"] == ["p(target|source)", "p(source|target)"]
    assert record["scores_before"] == 0
    assert 0 < record["counts"]["written"] == len((tmp_path / "one").read_bytes().splitlines())


def test_samples_of_a_source_are_the_same_in_any_input(models: Path, table: Path, tmp_path: Path) -> None:
    options = ["--samples", "30", "--seed", "7", "--temperature", "1.5", "--minimum-share", "0", "--keep", "30"]
    of_table = generate(models, tmp_path / "a", "--table", str(table), "--all-pairs", *options)
    (tmp_path / "text").write_text("un deux un\nun un un\n")
    of_text = generate(models, tmp_path / "b", "--sources", str(tmp_path / "text"), "--max-phrase", "2", *options)
    first, second = ({(s, t): p for s, t, p, *_ in rows if s in ("un", "un deux")} for rows in (of_table, of_text))
    assert first.keys() == second.keys()
    assert len(first) > 4
    assert {row[0] for row in of_text} == {"un", "deux", "un deux", "deux un", "un un"}
    other = generate(models, tmp_path / "c", "--table", str(table), "--all-pairs", *options, "--seed", "8")
    assert {(row[0], row[1]) for row in other} != {(row[0], row[1]) for row in of_table}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give either --table or --sources"),
        (["--table", "T", "--max-phrase", "3"], "go with --sources"),
        (["--table", "T", "--samples", "5", "--beam", "3"], "--beam is for search; leave out --samples"),
        (["--table", "T", "--seed", "5"], "--seed is for --samples"),
        (["--table", "T", "--beam", "5"], "--nbest 10 needs a --beam of at least as many"),
        (["--table", "T", "--minimum-share", "2"], "between 0 and 1"),
        (["--table", "T", "--samples", "5", "--temperature", "0"], "temperature"),
        (["--sources", "S", "--missing-from", "T"], "there is nothing to generate targets for"),
        (["--table", "F"], "F:1: the words have factors"),
        (["--sources", "S", "--missing-from", "/dev/null"], "/dev/null: is a device; expected an ordinary file"),
        (["--sources", "S", "--known-words", "/dev/null"], "/dev/null: is a device; expected an ordinary file"),
    ],
)
def test_what_does_not_fit_is_one_line(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("T").write_bytes(TABLE)
    Path("S").write_text("un deux\n")
    Path("F").write_text("".join(f"un|D deux|{place} un|A ||| one|D ||| 0.5\n" for place in "abc"))
    assert main(["generate-phrases", "--scorer", str(models / "direct"), "--output", "new", *options]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not Path("new").exists()


def test_the_defaults_are_those_of_the_documentation() -> None:
    parser = argparse.ArgumentParser()
    generate_phrases.add_arguments(parser)
    args = parser.parse_args(["--scorer", "m", "--table", "t", "--output", "o"])
    assert generate_phrases._options(args) == GenerationOptions(beam=12, nbest=10, samples=None, most_words=7)
    kept = Limits(args.keep, args.minimum_share, args.max_words, all_pairs=args.all_pairs)
    assert kept == Limits() == Limits(keep=5, minimum_share=0.02, most_words=7, largest_ratio=3.0, all_pairs=False)
    drawn = parser.parse_args(["--scorer", "m", "--table", "t", "--output", "o", "--samples", "50"])
    assert generate_phrases._options(drawn).request["temperature"] == 1.0
    assert generate_phrases._options(drawn).request["length_normalization"] == 0.0


def test_a_generated_table_has_no_scores_to_compare(models: Path, table: Path, tmp_path: Path, capsys) -> None:
    generate(models, tmp_path / "new", "--table", str(table))
    assert smt_bridge(["report", "--table", str(tmp_path / "new"), "--output", str(tmp_path / "page.html")]) == 2
    assert "without scores of a translation model" in capsys.readouterr().err
    command = ["filter-table", str(tmp_path / "new"), "--keep", "1", "--output", str(tmp_path / "small")]
    assert smt_bridge(command) == 0
    kept = [line.split(b" ||| ")[0] for line in read_lines(str(tmp_path / "small"))]
    assert len(kept) == len(set(kept)) > 0


FACTORED = TABLE.replace(b"deux ", b"deux|N ").replace(b"un ", b"un|D ").replace(b"zut alors", b"zut|I alors|I")


def test_one_factor_of_the_sources_is_read_and_all_are_written(models: Path, table: Path, tmp_path: Path) -> None:
    options = ["--reverse-scorer", str(models / "reverse"), "--max-words", "2"]
    plain = generate(models, tmp_path / "plain", "--table", str(table), *options)
    factored = tmp_path / "factored"
    factored.write_bytes(FACTORED)
    found = generate(models, tmp_path / "new", "--table", str(factored), "--factor", "0", *options)
    assert len(plain) > 3
    assert [[row[0].replace("|N", "").replace("|D", ""), *row[1:]] for row in found] == plain
    assert {row[0] for row in found} == {row[0].replace("un", "un|D").replace("deux", "deux|N") for row in plain}
    text = tmp_path / "text"
    text.write_text("deux|N un|D\n")
    found = generate(
        models, tmp_path / "grams", "--sources", str(text), "--factor", "0", "--missing-from", str(factored)
    )
    assert {row[0] for row in found} == {"deux|N un|D"}
