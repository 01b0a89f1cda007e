"""Tables and lists of factored sources, scored by models that read the factors and by others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.nbest.formats import read_entries
from tests.model_files import open_pair_scorer

SMALL = {"embedding": 3, "hidden": 4, "maxout": 3, "initialisation": "glorot"}
SOURCE = Vocabulary([*SPECIAL_WORDS, "das", "Haus", "ein"])
TARGET = Vocabulary([*SPECIAL_WORDS, "the", "house", "a"])
TAGS = Vocabulary([*SPECIAL_WORDS, "ART", "NN"])
TABLE = [("das|ART Haus|NN", "the house"), ("das|NN Haus|NN", "the house"), ("ein|ART", "a"), ("", "x")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("models")
    kinds: dict[str, tuple[AnyConfig, tuple[Vocabulary, Vocabulary], list[Vocabulary]]] = {
        "factored": (RNNsearchConfig(alignment=3, source_factors=[2], **SMALL), (SOURCE, TARGET), [TAGS]),
        "two factors": (RNNencdecConfig(source_factors=[2, 2], **SMALL), (SOURCE, TARGET), [TAGS, TAGS]),
        "plain": (RNNencdecConfig(**SMALL), (SOURCE, TARGET), []),
        "reverse": (RNNencdecConfig(**SMALL), (TARGET, SOURCE), []),
        "reverse factored": (RNNencdecConfig(source_factors=[2], **SMALL), (TARGET, SOURCE), [TAGS]),
    }
    for name, (config, sides, factors) in kinds.items():
        sizes = [len(one) for one in sides]
        model = new_model(config, *sizes, [len(one) for one in factors], seed=3)
        save_model(str(place / name), model, *sides, FolderConfig(model=config), factors=factors)
    return {name: str(place / name) for name in kinds}


def log_probs(model: str, pairs: list[tuple[str, str]]) -> list[float]:
    return [score.log_prob for score in open_pair_scorer([model]).score([SentencePair(*pair) for pair in pairs])]


def words(text: str, factor: int = 0) -> str:
    return " ".join(word.split("|")[factor] for word in text.split())


def rescored(place: Path, *options: str, table: list[tuple[str, str]] = TABLE) -> list[list[float]]:
    """The numbers that are added to each line."""
    lines = [f"{source} ||| {target} ||| 0.5" for source, target in table]
    (place / "table").write_text("".join(f"{line}\n" for line in lines))
    arguments = [str(place / "table"), "--output", str(place / "out"), "--quiet", "--jobs", "1", *options]
    assert main(["rescore-table", *arguments]) == 0
    written = (place / "out").read_text().splitlines()
    assert all(line.startswith(before) for line, before in zip(written, lines, strict=True))
    return [[math.log(float(value)) for value in line.split("|||")[2].split()[1:]] for line in written]


def test_a_model_of_factors_reads_all_factors_of_a_table(models: dict[str, str], tmp_path: Path) -> None:
    found = rescored(tmp_path, "--scorer", models["factored"])
    assert [value for (value,) in found[:3]] == pytest.approx(log_probs(models["factored"], TABLE[:3]), abs=1e-4)
    assert found[0] != found[1]
    assert "|factors:1|" in json.loads((tmp_path / "out.json").read_text())["signatures"]["scorer"]
    both = rescored(
        tmp_path, "--scorer", models["factored"], "--reverse-scorer", models["reverse"], "--factor", "0", "--restart"
    )
    backwards = log_probs(models["reverse"], [(target, words(source)) for source, target in TABLE[:3]])
    assert [one for one, _ in both[:3]] == [value for (value,) in found[:3]]
    assert [other for _, other in both[:3]] == pytest.approx(backwards, abs=1e-4)


def test_targets_with_factors_are_told_which_one_counts(models: dict[str, str], tmp_path: Path) -> None:
    table = [("das|ART Haus|NN", "the|ART house|NN"), ("ein|ART", "a|ART")]
    scorers = ["--scorer", models["factored"], "--reverse-scorer", models["reverse factored"]]
    found = rescored(tmp_path, *scorers, "--factor", "0", table=table)
    expected = log_probs(models["factored"], [(source, words(target)) for source, target in table])
    backwards = log_probs(models["reverse factored"], [(target, words(source)) for source, target in table])
    assert [one for one, _ in found] == pytest.approx(expected, abs=1e-4)
    assert [other for _, other in found] == pytest.approx(backwards, abs=1e-4)


@pytest.mark.parametrize(
    ("scorer", "options", "problem"),
    [
        ("plain", [], "table:1: the words have factors (das|ART), which no model knows whole; say with --factor"),
        ("factored", ["--reverse-scorer", "reverse"], "table:1: the words have factors"),
        ("factored", ["--unescape"], "--unescape makes of &#124; the bar between factors"),
    ],
)
def test_what_does_not_go_with_factors_is_one_line(
    models: dict[str, str],
    tmp_path: Path,
    scorer: str,
    options: list[str],
    problem: str,
    error_line: Callable[..., str],
) -> None:
    (tmp_path / "table").write_text("".join(f"{source} ||| {target} ||| 0.5\n" for source, target in TABLE))
    named = [models.get(option, option) for option in ["--scorer", scorer, *options]]
    arguments = ["--jobs", "1", "--quiet", "--output", str(tmp_path / "out")]
    assert problem in error_line(main, ["rescore-table", str(tmp_path / "table"), *named, *arguments])
    assert not (tmp_path / "out").exists()


def test_a_line_with_other_factors_is_named(
    models: dict[str, str], tmp_path: Path, error_line: Callable[..., str]
) -> None:
    lines = [*TABLE[:2], ("das|ART Haus", "the house")]
    (tmp_path / "table").write_text("".join(f"{source} ||| {target} ||| 0.5\n" for source, target in lines))
    arguments = ["--scorer", models["factored"], "--output", str(tmp_path / "out"), "--quiet", "--jobs", "1"]
    line = error_line(main, ["rescore-table", str(tmp_path / "table"), *arguments])
    assert "table:3: the word 'Haus' has 1 factor; the model reads 2" in line


NBEST = ["0 ||| the house ||| A= 1 ||| -1", "0 ||| a house ||| A= 1 ||| -2", "1 ||| a ||| A= 1 ||| -1"]
LINES = ["das|ART Haus|NN", "ein|ART"]


def annotate(place: Path, *options: str, lines: list[str] = LINES) -> int:
    (place / "source").write_text("".join(f"{line}\n" for line in lines))
    (place / "nbest").write_text("".join(f"{line}\n" for line in NBEST))
    files = ["--source", str(place / "source"), "--nbest", str(place / "nbest"), "--output", str(place / "rich")]
    return main(["add-features", *files, "--quiet", "--jobs", "1", *options])


def column(place: Path, name: str) -> list[float]:
    return [entry.features[name][0] for entry in read_entries(str(place / "rich"))]


def test_features_of_models_of_factors_and_of_others_in_one_list(
    models: dict[str, str], tmp_path: Path, error_line: Callable[..., str]
) -> None:
    pairs = [("das|ART Haus|NN", "the house"), ("das|ART Haus|NN", "a house"), ("ein|ART", "a")]
    expected = log_probs(models["factored"], pairs)
    assert annotate(tmp_path, "--scorer", models["factored"]) == 0
    assert column(tmp_path, "NMT0") == pytest.approx(expected, abs=1e-4)
    both = ["--scorer", models["factored"], "--scorer", models["plain"], "--feature", "lengthratio", "--restart"]
    line = error_line(annotate, tmp_path, *both)
    assert "source:1: the words have factors (das|ART), which NMT1 does not read; say" in line
    assert annotate(tmp_path, *both, "--factor", "0") == 0
    assert column(tmp_path, "NMT0") == pytest.approx(expected, abs=1e-4)
    plain = log_probs(models["plain"], [(words(source), target) for source, target in pairs])
    assert column(tmp_path, "NMT1") == pytest.approx(plain, abs=1e-4)


def test_models_of_other_numbers_of_factors_are_named(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert annotate(tmp_path, "--scorer", models["factored"], "--scorer", models["two factors"]) == 2
    said = "the models read 1 and 2 factors beside each source word; use those that read as many"
    assert capsys.readouterr().err == f"smt-bridge add-features: {said}\n"


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--scorer", "source:2: the word 'ein' has 1 factor; the model reads 2"),
        ("--reverse-scorer", "NMTreverse0: the model reads words with factors, which hypotheses have not"),
    ],
)
def test_a_source_without_the_factors_of_the_model_is_named(
    models: dict[str, str],
    tmp_path: Path,
    option: str,
    problem: str,
    error_line: Callable[..., str],
) -> None:
    assert problem in error_line(annotate, tmp_path, option, models["factored"], lines=["das|ART Haus|NN", "ein"])
