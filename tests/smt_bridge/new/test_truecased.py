"""A truecased twin of the example system: its preparation is found, carried, and used for running text."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
import yaml

from nmt_core.base.errors import ConfigError
from nmt_core.commands.main import main as nmt_core
from nmt_core.preparation.bundled import BundledPreprocessor, PreparedText
from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.truecasing import MosesTruecasing
from smt_bridge.commands.main import main
from smt_bridge.new import run
from smt_bridge.new.preparation import open_truecasers
from tests.smt_bridge.hybrid.small_hybrid import fake_moses
from tests.truecased_example import EXAMPLE, LANGUAGES, digest, lines_of, make_model, make_truecased

pytestmark = pytest.mark.skipif(" " in tempfile.gettempdir(), reason="moses.ini holds no path with a blank")

# Of what truecase.perl makes of the example's texts, and detruecase.perl of that (Moses, commit 3445289).
PERL = {
    "train.en": ("be9fd3c960b461fb", "23b8a7829f68d313"),
    "dev.en": ("00548d9eaadb9593", "5cc2889d02a28bf9"),
    "test.en": ("e2cc06fed2d2bf3c", "5eac2918e12b4b99"),
    "train.fr": ("05c458f2a5dc54bd", "e9c66b8d927b5055"),
    "dev.fr": ("e840913ba431996f", "b6e087005a9d0496"),
    "test.fr": ("9315cbaab3216ef5", "174866f953a16a4d"),
}
RAW = "The dog sleeps. Anna's cat eats!"
WORDS = "the dog sleeps . Anna &apos;s cat eats !"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_twin_is_cased_as_by_the_scripts_of_moses(language: str) -> None:
    texts = {name: lines_of(EXAMPLE / "data" / f"{name}.tok.{language}.gz") for name in ("train", "dev", "test")}
    step = MosesTruecasing.open(ModelFile(language, make_model(texts["train"])))
    for name, lines in texts.items():
        truecased = [step.apply(line) for line in lines]
        found = (digest(truecased), digest([step.undo(line) for line in truecased]))
        assert tuple(one[:16] for one in found) == PERL[f"{name}.{language}"]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twin")
    make_truecased(folder)
    return folder


@pytest.fixture
def system(twin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The twin as the current folder, in which every test makes its own directory."""
    monkeypatch.chdir(twin)
    return twin


def new(
    folder: Path, *length: str, train: str = "train.en train.fr", models: str = "truecase-model.en truecase-model.fr"
) -> int:
    texts = ["--train", *train.split(), "--dev", "dev.en", "dev.fr", "--nbest", "dev.nbest"]
    options = ["--truecase-model", *models.split(), *(length or ("--updates", "3"))]
    return main(["new", str(folder), "--moses-ini", "moses.ini", *texts, *options])


def test_the_models_carry_the_preparation(system: Path, tmp_path: Path) -> None:
    assert new(tmp_path / "hybrid") == 0
    text = PreparedText(BundledPreprocessor.read(str(tmp_path / "hybrid" / "preparation.json")))
    assert text.tokenize(RAW) == WORDS
    assert text.detokenize("le chien dort . Anna mange !") == "Le chien dort. Anna mange !"
    for name in ("rnnsearch", "reverse"):
        settings = yaml.safe_load((tmp_path / "hybrid" / f"{name}.yaml").read_text())
        assert settings["data"]["preparation"] == "preparation.json"


def test_the_trainings_that_measure_the_speed_find_the_preparation(
    system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(names: list[str], folder: Path, *, threads: int) -> float:
        for name in names:
            assert (folder / yaml.safe_load((folder / name).read_text())["data"]["preparation"]).exists()
        return 2000.0

    monkeypatch.setattr(run, "measure_speed", measured)
    assert new(tmp_path / "hybrid", "--minutes", "60") == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"models": "truecase-model.fr truecase-model.en"}, r"truecase-model.fr: knows \d+% of the words of train.en"),
        ({"train": "cased.en cased.fr"},
         r"--train cased.en: truecase-model.en changes \d+% of its lines; give the truecased text that Moses"),
        ({"models": "dev.en dev.fr"}, r"dev.en:1: expected a line of train-truecaser.perl"),
        ({"models": "dev.en none.fr"}, r"none.fr: cannot be read"),
    ],
    ids=["exchanged", "cased", "no-model", "missing"],
)  # fmt: skip
def test_what_does_not_fit_is_said_first(
    system: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], said: str
) -> None:
    for language in LANGUAGES:
        lines = lines_of(EXAMPLE / "data" / f"train.tok.{language}.gz")[:400]
        Path(f"cased.{language}").write_text("".join(f"{line}\n" for line in lines))
    assert new(tmp_path / "hybrid", **changed) == 2
    assert re.search(said, capsys.readouterr().err.splitlines()[-1])
    assert not (tmp_path / "hybrid").exists()


@pytest.fixture
def hybrid(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory with a model of three updates, as the current folder."""
    assert new(tmp_path / "hybrid") == 0
    monkeypatch.chdir(tmp_path / "hybrid")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert nmt_core(["train", "rnnsearch.yaml"]) == 0
    return system


def translate(*options: str) -> str:
    """What a hybrid of the twin makes of running text."""
    Path("in").write_text(f"{RAW}\n")
    moses = ["--moses", fake_moses(Path.cwd()), "--moses-ini", "moses.ini", "--quiet", "--device", "cpu"]
    made = ["--lists", "moses:2,nmt:2", "--feature", "wordcount", "--nbest-output", "list", "--raw"]
    assert main(["translate", *moses, *made, *options, "--input", "in", "--output", "out"]) == 0
    return Path("out").read_text()


def test_a_hybrid_takes_running_text(hybrid: Path) -> None:
    """The stand-in for Moses turns words round, so that its list shows what it read."""
    read = " ".join(word[::-1] for word in WORDS.split(" "))
    assert nmt_core(["init", "plain", "--preset", "rnnsearch", "--source-vocab", "rnnsearch/source.vocab",
                     "--target-vocab", "rnnsearch/target.vocab", "--set", "model.hidden=4", "--set",
                     "model.embedding=4", "--set", "model.alignment=4", "--set", "model.maxout=4"]) == 0  # fmt: skip
    for options in (["--model", "rnnsearch"], ["--model", "plain", "--preparation", "preparation.json"]):
        translated = translate(*options)
        assert translated[0].isupper() or not translated[0].isalpha()
        assert any(f"||| {read} |||" in line for line in Path("list").read_text().splitlines())
    assert '"preparation": "preparation.json"' in Path("list.json").read_text()  # of the recipe in the record
    translate("--model", "plain")  # which says nothing of case
    assert not any(f"||| {read} |||" in line for line in Path("list").read_text().splitlines())


KNOWN = {"en": ["the", "dog", "sleeps"], "fr": ["le", "chien", "dort"]}


@pytest.mark.parametrize(("wrong", "side"), [("de fr", "en"), ("en de", "fr")])
def test_the_truecaser_of_either_side_is_looked_at(tmp_path: Path, wrong: str, side: str) -> None:
    for language, words in {**KNOWN, "de": ["der", "hund", "bellt"]}.items():
        (tmp_path / f"model.{language}").write_text("".join(f"{word} (1/1)\n" for word in words))
        (tmp_path / f"train.{language}").write_text(" ".join(words) + "\n")
    train = [str(tmp_path / f"train.{language}") for language in KNOWN]
    assert len(open_truecasers([str(tmp_path / f"model.{language}") for language in KNOWN], train)) == 2
    with pytest.raises(ConfigError, match="a/x b/x: the names do not tell the sides apart; rename one"):
        open_truecasers(["none", "none"], ["a/x", "b/x"])
    first = "give the model of the source first"
    with pytest.raises(
        ConfigError, match=rf"--truecase-model .*model.de: knows 0% of the words of .*train.{side}; {first}"
    ):
        open_truecasers([str(tmp_path / f"model.{language}") for language in wrong.split()], train)
