"""Raw text in, raw text out: what a model carries in its folder, for every kind of preparation."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from nmt_core.commands.main import main
from nmt_core.errors import ConfigError, InputError
from nmt_core.models.checkpoint import load_model
from nmt_core.models.raw_text import open_raw_text

ENGLISH = [
    "The plan\u2019s good.",
    "A man sees the plan.",
    "Men see a dog.",
    "The dog sees the man.",
    "Good dogs! A man.",
    "The men see the dogs.",
]
GERMAN = [
    "Der Aktionsplan ist gut.",
    "Ein Mann sieht den Plan.",
    "Männer sehen einen Hund.",
    "Der Hund sieht den Mann.",
    "Gute Hunde! Ein Mann der Aktion.",
    "Die Männer sehen die Hunde.",
]
NEW = ["The man sees the plan\u2019s dog.", "", "Good men! Dogs see \u201cthe plan\u201d."]

KINDS = {
    "words": "",
    "truecased": "--truecase",
    "bpe": "--truecase --split-compounds target --bpe 30 --set compounds.mark=true",
    "unescaped": "--bpe 40 --set tokenization.escape=false",
    "sentencepiece": "--sentencepiece 55 --set tokenization=null",
    "morfessor": "--morfessor --split-compounds source target",
}


def pipe(arguments: Sequence[str], lines: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines a command writes when it reads ``lines``."""
    output = io.TextIOWrapper(io.BytesIO())
    content = "".join(f"{line}\n" for line in lines).encode()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        patch.setattr(sys, "stdout", output)
        assert main(list(arguments)) == 0
    return output.buffer.getvalue().decode().split("\n")[:-1]  # type: ignore[attr-defined, no-any-return]


def make_model(folder: Path, options: str, *, turned: bool = False, **training: object) -> Path:
    """Prepare the corpus in ``folder`` and train a small model on it, to the other direction if ``turned``."""
    (folder / "raw.en").write_text("".join(f"{line}\n" for line in ENGLISH))
    (folder / "raw.de").write_text("".join(f"{line}\n" for line in GERMAN))
    pair = ["--source", str(folder / "raw.en"), "--target", str(folder / "raw.de"), "--quiet"]
    languages = ["--source-language", "en", "--target-language", "de"]
    if not (folder / "data").exists():
        assert main(["prepare", *pair, *languages, "--output", str(folder / "data/train"), *options.split()]) == 0
    sides = [str(folder / f"data/train.{language}") for language in (("de", "en") if turned else ("en", "de"))]
    settings = {
        "folder": str(folder / "model"),
        "model": {"type": "rnnsearch", "hidden": 8, "embedding": 6, "alignment": 5, "maxout": 4, "dropout": 0.0},
        "data": {"source": sides[0], "target": sides[1], "dev_source": sides[0], "dev_target": sides[1]},
        "training": {"optimizer": "adam", "learning_rate": 0.02, "max_updates": 30, "validate_every": 15, **training},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))
    assert main(["train", str(folder / "run.yaml"), "--quiet"]) == 0
    return folder / "model"


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``model_of("bpe")``: the folder of a model of that kind of preparation, made once."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = make_model(tmp_path_factory.mktemp(kind), KINDS[kind])
        return made[kind]

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_raw_text_goes_the_way_of_the_training_text(
    model_of: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --raw does in one command is, byte for byte, what three commands do by hand."""
    model = model_of(kind)
    record = str(model.parent / "data/preparation.json")
    prepared = pipe(["prepare", "--replay", record, "--side", "source"], NEW, monkeypatch)
    decode = ["decode", "--model", str(model), "--beam", "3", "--max-length-ratio", "1", "--quiet"]
    written = pipe(decode, prepared, monkeypatch)
    by_hand = pipe(["prepare", "--replay", record, "--reverse"], written, monkeypatch)
    assert pipe([*decode, "--raw"], NEW, monkeypatch) == by_hand
    assert by_hand[1] == ""
    assert any(by_hand)


def test_the_folder_says_how_it_is_read(model_of: Callable[[str], Path]) -> None:
    model = model_of("bpe")
    settings = yaml.safe_load((model / "config.yaml").read_text())
    names = {"preparation.json", "truecasing.en", "truecasing.de", "compounds.de", "subwords"}
    assert (settings["format_version"], set(settings["preparation"])) == (2, names)
    assert settings["text"]["target_language"] == "de"
    assert {path.name for path in (model / "preparation").iterdir()} == names
    record = json.loads((model / "preparation/preparation.json").read_text())
    assert (record["settings"]["source_language"], record["outputs"]["source"]) == ("en", "train.en")


def test_a_model_of_the_other_direction_carries_the_sides_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(tmp_path, KINDS["bpe"], turned=True)
    text = open_raw_text([load_model(str(model))])
    record = str(tmp_path / "data/preparation.json")
    raw = ["Der Aktionsplan ist gut.", "Die Hunde der M\u00e4nner!"]
    replayed = pipe(["prepare", "--replay", record, "--side", "target"], raw, monkeypatch)
    assert [text.tokenize(line) for line in raw] == replayed
    backwards = ["prepare", "--replay", record, "--side", "source", "--reverse"]
    assert [text.detokenize("the pl@@ an &apos;s good .")] == pipe(
        backwards, ["the pl@@ an &apos;s good ."], monkeypatch
    )


def test_models_made_of_models_carry_it_too(model_of: Callable[[str], Path], tmp_path: Path) -> None:
    model = str(model_of("bpe"))
    carried = load_model(model).preparation
    assert main(["average", model, model, "--output", str(tmp_path / "mean")]) == 0
    assert load_model(str(tmp_path / "mean")).preparation == carried
    text = "".join(f"{line}\n" for line in (model_of("bpe").parent / "data/train.de").read_text().split("\n")[:-1])
    (tmp_path / "mono.de").write_text(text)
    lm = {
        "folder": str(tmp_path / "lm"),
        "model": {"type": "rnnlm", "hidden": 4, "embedding": 4},
        "data": {
            "text": str(tmp_path / "mono.de"),
            "dev_text": str(tmp_path / "mono.de"),
            "target_vocabulary": f"{model}/target.vocab",
            "preparation": f"{model}/preparation/preparation.json",
        },
        "training": {"max_updates": 2, "validate_every": 1, "select_by": "nll"},
    }
    (tmp_path / "lm.yaml").write_text(yaml.safe_dump(lm))
    assert main(["train-lm", str(tmp_path / "lm.yaml"), "--quiet"]) == 0
    alone = load_model(str(tmp_path / "lm")).preparation
    assert alone is not None
    assert alone.record.settings.languages == {"target": "de"}
    assert main(["fuse", "--model", model, "--lm", str(tmp_path / "lm"), "--output", str(tmp_path / "fused")]) == 0
    assert load_model(str(tmp_path / "fused")).preparation == carried


def test_members_of_an_ensemble_read_raw_text_alike(model_of: Callable[[str], Path]) -> None:
    bpe, words = (load_model(str(model_of(kind))) for kind in ("bpe", "words"))
    assert open_raw_text([bpe, bpe]).tokenize("The plan.")
    with pytest.raises(ConfigError, match="prepared in different ways"):
        open_raw_text([bpe, words])


def test_the_model_outlives_its_data(model_of: Callable[[str], Path], tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(model_of("bpe"), model)
    assert open_raw_text([load_model(str(model))]).tokenize("The plan.").startswith("the ")


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda folder: (folder / "subwords").write_text("#version: 0.2\na b\n"), "subwords: not the"),
        (lambda folder: (folder / "subwords").unlink(), "subwords: cannot be read"),
        (lambda folder: (folder / "preparation.json").write_text("{}"), "not a preparation.json"),
        (lambda folder: shutil.rmtree(folder), "preparation.json: cannot be read"),
    ],
)
def test_a_folder_that_is_not_as_it_was_saved_is_refused(
    model_of: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    harm: Callable[[Path], object],
    problem: str,
) -> None:
    model = tmp_path / "model"
    shutil.copytree(model_of("bpe"), model)
    harm(model / "preparation")
    assert main(["score", "--model", str(model), "/dev/null", "/dev/null"]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def test_only_regular_files_of_a_bounded_size_are_read(
    model_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from nmt_core.preparation import carried

    place = tmp_path / "preparation"
    shutil.copytree(model_of("bpe") / "preparation", place)
    monkeypatch.setattr(carried, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="more than any preparation needs"):
        carried.CarriedPreparation.read(str(place / "preparation.json"))
    monkeypatch.undo()
    (place / "subwords").unlink()
    os.mkfifo(place / "subwords")
    with pytest.raises(InputError, match="subwords: is not a regular file"):
        carried.CarriedPreparation.read(str(place / "preparation.json"))
    (place / "subwords").unlink()
    (place / "subwords").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="subwords: is not a regular file"):
        carried.CarriedPreparation.read(str(place / "preparation.json"))


def test_a_record_cannot_name_files_elsewhere(model_of: Callable[[str], Path], tmp_path: Path) -> None:
    from nmt_core.preparation.carried import CarriedPreparation

    place = tmp_path / "preparation"
    shutil.copytree(model_of("words") / "preparation", place)
    record = json.loads((place / "preparation.json").read_text())
    record["models"] = {"../../escaped": "0" * 64}
    (place / "preparation.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="speaks of other files than its steps have"):
        CarriedPreparation.read(str(place / "preparation.json"))
