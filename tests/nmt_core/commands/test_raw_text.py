"""Raw text in, raw text out: what a model carries in its folder, for every kind of preparation."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.commands.main import main
from nmt_core.model_directory.ensembles import open_raw_text
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.preparation import bundled
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.text.processing import TextConfig
from nmt_core.training import validation
from nmt_core.training.data.config import DataConfig
from nmt_core.training.data.preparation import find_preparation
from tests.prepared_models import ENGLISH, GERMAN, KINDS, NEW, make_model, pipe


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
    prepared = pipe(["prepare", "lines", record, "--side", "source"], NEW, monkeypatch)
    decode = ["decode", "--model", str(model), "--beam", "3", "--search=max_length_ratio=1", "--quiet"]
    written = pipe(decode, prepared, monkeypatch)
    by_hand = pipe(["prepare", "lines", record, "--reverse"], written, monkeypatch)
    assert pipe([*decode, "--raw"], NEW, monkeypatch) == by_hand
    assert by_hand[1] == ""
    assert any(by_hand)


@pytest.mark.parametrize("kind", KINDS)
def test_bundled_models_are_read_from_memory(
    model_of: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(str(model_of(kind)))
    monkeypatch.setattr("tempfile.tempdir", "/no/such/directory")
    assert open_raw_text([model]).tokenize(NEW[0])


def test_the_folder_says_how_it_is_read(model_of: Callable[[str], Path]) -> None:
    model = model_of("bpe")
    settings = yaml.safe_load((model / "config.yaml").read_text())
    names = {"preparation.json", "truecasing.en", "truecasing.de", "compounds.de", "subwords"}
    assert set(settings["preparation"]) == names
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
    replayed = pipe(["prepare", "lines", record, "--side", "target"], raw, monkeypatch)
    assert [text.tokenize(line) for line in raw] == replayed
    backwards = ["prepare", "lines", record, "--side", "source", "--reverse"]
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
    assert main(["train", str(tmp_path / "lm.yaml"), "--quiet"]) == 0
    alone = load_model(str(tmp_path / "lm")).preparation
    assert alone is not None
    assert alone.record.settings.languages == {"target": "de"}
    assert main(["fuse", "--model", model, "--lm", str(tmp_path / "lm"), "--output", str(tmp_path / "fused")]) == 0
    assert load_model(str(tmp_path / "fused")).preparation == carried


def test_members_of_an_ensemble_read_raw_text_alike(model_of: Callable[[str], Path]) -> None:
    bpe, words = (load_model(str(model_of(kind))) for kind in ("bpe", "words"))
    assert open_raw_text([bpe, bpe]).tokenize("The plan.")
    for other in (words, dataclasses.replace(bpe, preparation=None)):
        problem = (
            f"^{bpe.folder} and {other.folder} were trained on text that was prepared in different ways; an ensemble of"
            " them takes prepared text only, of one kind that all of them know$"
        )
        with pytest.raises(ConfigError, match=problem):
            open_raw_text([bpe, other])
    plain = dataclasses.replace(bpe, preparation=None)
    german = plain.config.model_copy(update={"text": TextConfig(source_language="de")})
    assert open_raw_text([plain, plain]).tokenize("The plan.") == "The plan ."
    with pytest.raises(ConfigError, match="prepared in different ways"):
        open_raw_text([plain, dataclasses.replace(plain, config=german)])


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda folder: (folder / "subwords").write_text("#version: 0.2\na b\n"), "subwords: not the model that"),
        (
            lambda folder: (folder / "preparation.json").write_bytes(b" " + (folder / "preparation.json").read_bytes()),
            "not the file that the model was saved with",
        ),
        (lambda folder: (folder / "subwords").unlink(), "subwords: cannot be read"),
        (
            lambda folder: (folder / "preparation.json").write_text("{}"),
            "not a preparation.json that this version understands; expected what 'nmt-core prepare' wrote",
        ),
        (lambda folder: shutil.rmtree(folder), "preparation.json: cannot be read"),
    ],
)
def test_a_folder_that_is_not_as_it_was_saved_is_refused(
    model_of: Callable[[str], Path],
    tmp_path: Path,
    error_line: Callable[..., str],
    harm: Callable[[Path], object],
    problem: str,
) -> None:
    model = tmp_path / "model"
    shutil.copytree(model_of("bpe"), model)
    harm(model / "preparation")
    assert problem in error_line(main, ["score", "--model", str(model), "/dev/null", "/dev/null"])


def test_only_regular_files_of_a_bounded_size_are_read(
    model_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "preparation"
    assert bundled.MOST_BYTES == 268_435_456
    shutil.copytree(model_of("bpe") / "preparation", place)
    monkeypatch.setattr(bundled, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="has more than 10 bytes"):
        BundledPreprocessor.read(str(place / "preparation.json"))
    monkeypatch.undo()
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (place / "subwords").unlink()
        make(place / "subwords")
        with pytest.raises(InputError, match=r"subwords: is .*expected an ordinary file"):
            BundledPreprocessor.read(str(place / "preparation.json"))


def test_a_record_cannot_name_files_elsewhere(model_of: Callable[[str], Path], tmp_path: Path) -> None:
    place = tmp_path / "preparation"
    shutil.copytree(model_of("words") / "preparation", place)
    record = json.loads((place / "preparation.json").read_text())
    record["models"] = {"../../escaped": "0" * 64}
    (place / "preparation.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"its steps have; was it edited\? Prepare the text again$"):
        BundledPreprocessor.read(str(place / "preparation.json"))


def test_scores_of_raw_text_and_of_surface_words(
    model_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--raw = prepare and score by hand; --surface has a number for each word, and the same sum."""
    model = model_of("bpe")
    record = str(model.parent / "data/preparation.json")
    texts = {"raw.en": ENGLISH[:3], "raw.de": GERMAN[:3]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        side = "source" if name == "raw.en" else "target"
        prepared = pipe(["prepare", "lines", record, "--side", side], lines, monkeypatch)
        (tmp_path / f"prepared.{side}").write_text("".join(f"{line}\n" for line in prepared))
    score = ["score", "--model", str(model), "--quiet"]
    raw = pipe([*score, "--raw", str(tmp_path / "raw.en"), str(tmp_path / "raw.de")], [], monkeypatch)
    by_hand = [str(tmp_path / f"prepared.{side}") for side in ("source", "target")]
    assert raw == pipe([*score, *by_hand], [], monkeypatch)
    (tmp_path / "moses.en").write_text("the plan &apos;s good .\nmen see a dog .\n")
    (tmp_path / "moses.de").write_text("der Plan ist gut .\nHunde sehen .\n")
    moses = [str(tmp_path / "moses.en"), str(tmp_path / "moses.de")]
    sums = pipe([*score, "--surface", *moses], [], monkeypatch)
    words = pipe([*score, "--surface", "--per-word", *moses], [], monkeypatch)
    assert [len(line.split()) for line in words] == [6, 4]
    for total, line in zip(sums, words, strict=True):
        assert sum(map(float, line.split())) == pytest.approx(float(total), abs=1e-5)


@pytest.mark.parametrize("command", ["decode", "score"])
def test_text_that_was_prepared_otherwise_is_noticed_once(
    model_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    model = model_of("bpe")
    lines = ["The unsegmented plan, dogs and men."] * 40
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    given = ["--search=max_length_ratio=1", "--beam", "1"] if command == "decode" else [str(tmp_path / "text")] * 2
    pipe([command, "--model", str(model), "--quiet", *given], lines, monkeypatch)
    message = capsys.readouterr().err
    assert message.count("unknown to the model") == 1
    assert "Raw text needs --raw" in message
    strange = ["ж ж ж ж ж"] * 40
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in strange))
    pipe([command, "--model", str(model), "--quiet", "--raw", *given], strange, monkeypatch)
    message = capsys.readouterr().err
    assert message.count("unknown to the model") == 1 and "--raw" not in message


def test_development_bleu_is_of_words(model_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation that has the reference's words in other pieces is perfect."""

    class Perfect:
        def __init__(self, *models: object, **options: object) -> None: ...

        def translate(self, lines: list[str]) -> list[list[SimpleNamespace]]:
            return [[SimpleNamespace(text="der Ak@@ tion @s@ pl@@ an ist g@@ ut .")] for _ in lines]

    monkeypatch.setattr(validation, "Translator", Perfect)
    loaded = load_model(str(model_of("bpe")))
    assert loaded.preparation is not None
    words = loaded.preparation.open_words("target")
    references = ["d@@ er Aktion @s@ plan ist gut ."]
    of_words = validation.DevelopmentSet(["the plan"], references, words.undo)
    of_pieces = validation.DevelopmentSet(["the plan"], references)
    assert of_words.measure(loaded, beam=2).bleu == pytest.approx(100.0)
    assert (of_pieces.measure(loaded, beam=2).bleu or 0.0) < 50.0


def test_a_run_goes_on_with_its_preparation_alone(
    model_of: Callable[[str], Path], tmp_path: Path, error_line: Callable[..., str]
) -> None:
    """With another one its model would cut raw text in another way than its training text was cut."""
    shutil.copytree(model_of("bpe").parent, tmp_path, dirs_exist_ok=True)
    other = model_of("truecased").parent / "data/preparation.json"
    more = ["--set", "training.max_updates=31", "--set", f"folder={tmp_path / 'model'}"]
    train = ["train", str(tmp_path / "run.yaml"), "--quiet", "--resume", *more]
    line = error_line(main, [*train, "--set", f"data.preparation={other}"])
    assert "the preparation is another; data.preparation was auto and is " in line
    assert main(train) == 0


def test_a_run_that_begins_with_a_model_has_its_preparation_and_no_other(model_of: Callable[[str], Path]) -> None:
    start, records = load_model(str(model_of("bpe"))).preparation, {}
    for kind in ("bpe", "truecased"):
        records[kind] = str(model_of(kind).parent / "data/preparation.json")
    text = {"source": "text.en", "target": "text.de"}  # beside which there is none
    assert find_preparation(DataConfig(**text), start).preparation == start
    found = find_preparation(DataConfig(**text, preparation=records["bpe"]), start).preparation
    assert found is not None and start is not None and found.fingerprint == start.fingerprint
    assert find_preparation(DataConfig(**text, preparation=None), start).preparation is None
    beside = model_of("bpe").parent / "data"
    record, unlike = beside / "preparation.json", {"source": f"{beside}/other.en", "target": f"{beside}/train.de"}
    files = {side: f"{beside}/train.{name}" for side, name in (("source", "en"), ("target", "de"))}
    assert find_preparation(DataConfig(**files), None).note == f"the model carries {record}"
    about = f"{record} is not about {unlike['source']} and {unlike['target']}"
    found = find_preparation(DataConfig(**unlike), None)
    assert found == (None, f"{about}; if the text was prepared by it, set data.preparation={record}")
    with pytest.raises(ConfigError, match=r"training\.start_from: the model was trained on text that was"):
        find_preparation(DataConfig(**text, preparation=records["truecased"]), start)
