"""No command writes over what it reads without naming it: models' files, records, what an ini or a recipe names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main as smt_bridge
from smt_bridge.recipe import Recipe, write_recipe
from smt_bridge.tables.rescore import rescore_table

INI = """[feature]
PhraseDictionaryMemory name=TM0 num-features=4 path=tables/phrases.gz input-factor=0 output-factor=0
LexicalReordering name=LR0 num-features=6 path=tables/reordering.gz
KENLM name=LM0 path=lm.arpa
[weight-file]
sparse
[weight]
LM0= 1
"""
LIST_RECORD = {"input": "a", "columns": {}, "counts": {}, "options": {}}
MODEL = ("config.yaml", "model.safetensors", "source.vocab", "target.vocab", "lexicon.gz", "preparation/bpe.codes")
NAMED = ("tables/phrases.gz", "tables/reordering.gz", "lm.arpa", "sparse")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, a list with its record, and a system of Moses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "M" / "preparation").mkdir(parents=True)
    (tmp_path / "tables").mkdir()
    for name in (*(f"M/{one}" for one in MODEL), *NAMED, "list", "lexicon", "exact.arpa", "binary"):
        (tmp_path / name).write_bytes(b"content")
    (tmp_path / "moses.ini").write_text(INI)
    (tmp_path / "list.json").write_text(json.dumps(LIST_RECORD))
    features = ("nmt:M", "model1:lexicon", "mbrbleu")
    recipe = Recipe("moses.ini", 1, 1, "M", 1, 1, forbid_unknown=False, fill="last", exact=("LM0=exact.arpa",),
                    features=features)  # fmt: skip
    write_recipe("recipe", recipe)
    os.link("M/model.safetensors", "hard")
    os.symlink("M", "link")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(program: object, command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command says that is refused because it would write over something; nothing has changed."""
    assert callable(program)
    before = contents()
    assert program(command.split()) == 2
    message = capfd.readouterr().err
    assert contents() == before
    return message


WITH_MODEL = [
    (nmt_core, "decode --model M --output {}"),
    (nmt_core, "decode --model other --model M --alignments {}"),
    (nmt_core, "decode --model other --fusion-lm M --output {}"),
    (nmt_core, "tune-lm --model M --lm lm.arpa --source a --reference b --output {}"),
    (nmt_core, "score --model M a b --alignments {}"),
    (nmt_core, "embed --model M a --output {}"),
    (nmt_core, "lexicon --moses lexicon --model M --output {}"),
    (nmt_core, "serve --model m=other,M --access-log {}"),
    (nmt_core, "serve --models . --access-log {}"),
    (smt_bridge, "rescore-table a --scorer M --output {}"),
    (smt_bridge, "rescore-table a --scorer grpc:h:1 --reverse-scorer other,M --output {}"),
    (smt_bridge, "add-features --source a --nbest b --scorer M --output {}"),
    (smt_bridge, "add-features --source a --nbest b --reverse-scorer M --output {}"),
    (smt_bridge, "add-features --source a --nbest b --rnnlm M --output {}"),
    (smt_bridge, "translate --moses-ini a --model M --nbest-output {}"),
    (smt_bridge, "translate --recipe recipe --output {}"),
    (smt_bridge, "serve --hybrid h=recipe --access-log {}"),
    (smt_bridge, "report --nbest a --weights b --source c --reference d --scorer M --output {}"),
]


@pytest.mark.parametrize(("program", "command"), WITH_MODEL, ids=lambda value: value if isinstance(value, str) else "")
def test_files_of_a_model_are_spared(program: object, command: str, capfd: pytest.CaptureFixture[str]) -> None:
    for name in (*(f"M/{one}" for one in MODEL), "link/config.yaml", "hard"):
        assert f"{name} is also read, as " in refused(program, command.format(name), capfd)


@pytest.mark.parametrize(("program", "command"), WITH_MODEL, ids=lambda value: value if isinstance(value, str) else "")
def test_other_files_of_its_folder_may_be_written(
    program: object, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("M/out").write_bytes(b"of an earlier command")
    for name in ("M/out", "M/new", "/dev/null", "/dev/stderr"):
        assert callable(program)
        assert program(command.format(name).split()) == 2  # for another reason
        assert "is also" not in capfd.readouterr().err


WITH_SYSTEM = [
    (smt_bridge, "wire moses.ini --table nmt.gz --added 1 --output {}"),
    (smt_bridge, "tune-loop moses.ini --source a --reference b --working-dir c --output {}"),
    (smt_bridge, "translate --moses-ini moses.ini --model other --output {}"),
    (smt_bridge, "translate --recipe recipe --nbest-output {}"),
    (smt_bridge, "translate --moses-ini moses.ini --model other --advice-weight 1 --write-recipe {}"),
    (smt_bridge, "serve --hybrid h=recipe --access-log {}"),
    (smt_bridge, "tune --nbest a --reference b --start moses.ini --output {}"),
    (smt_bridge, "rerank --nbest a --weights moses.ini --output {}"),
    (smt_bridge, "report --nbest a --weights moses.ini --source c --reference d --json {} --output o"),
]


@pytest.mark.parametrize(("program", "command"), WITH_SYSTEM, ids=lambda value: value if isinstance(value, str) else "")
def test_what_an_ini_or_a_recipe_names_is_spared(
    program: object, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in NAMED:
        message = refused(program, command.format(name), capfd)
        assert f"{name} is also read, as {name} of " in message
        assert "moses.ini, and would be lost" in message or "recipe, and would be lost" in message


def test_what_features_of_a_recipe_read_is_spared(capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("lexicon", "exact.arpa"):
        assert f"--output {name} is also read, as {name} of recipe" in refused(
            smt_bridge, f"translate --recipe recipe --output {name}", capfd
        )


RECORDS = [
    "add-features --source a --nbest list --word-count --output list.json",
    "add-features --source a --nbest list --word-count --output list.json",
    "add-features --source s --nbest a=list --nbest b=other --output list.json",
    "add-features --source s --nbest a=list --nbest b=other --output o --write-constraints a=list.json",
    "tune --nbest list --reference b --output list.json",
    "tune --nbest list --reference b --output o --report list.json",
    "tune --nbest list --reference b --output o --recipe list.json",
    "rerank --nbest list --weights w --reference r --report list.json --output o",
    "report --nbest list --weights w --source s --reference r --output list.json",
    "report --table list --output o --json list.json",
    "rescore-table list --scorer M --output list.json",
    "filter-table list --keep 1 --output list.json",
    "wire moses.ini --table list --output list.json",
]


@pytest.mark.parametrize("command", RECORDS)
def test_the_record_of_an_input_is_spared(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "list.json is also read, as list.json, and would be lost" in refused(smt_bridge, command, capfd)


@pytest.mark.parametrize(
    "command",
    [
        "add-features --source a --nbest M/config.yaml.json --word-count --output M/config.yaml.json",
        "add-features --source a --nbest in.json --word-count --output in",
        "add-features --source s --nbest a=in.json --nbest b=other --output in",
        "rescore-table in.json --scorer M --output in",
        "filter-table in.json --keep 1 --output in",
        "translate --input in.json --moses-ini a --model M --nbest-output in",
    ],
)
def test_no_record_is_written_over_an_input(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("in.json").write_bytes(b"content")
    Path("M/config.yaml.json").write_bytes(b"content")
    assert "is also read, as " in refused(smt_bridge, command, capfd)


def test_a_record_and_another_output_are_different_files(capfd: pytest.CaptureFixture[str]) -> None:
    command = "add-features --source s --nbest a=list --nbest b=other --output o --write-constraints a=o.json"
    assert "a name of its own" in refused(smt_bridge, command, capfd)


def test_what_would_be_taken_for_a_record_is_not_written(capfd: pytest.CaptureFixture[str]) -> None:
    command = "tune --nbest other --reference b --output o --report other.json"
    assert "other.json is also read" in refused(smt_bridge, command, capfd)


@pytest.mark.parametrize(
    "command",
    [
        "init M/new --preset rnnencdec --source-vocab M/new/target.vocab --target-vocab a",
        "init M/new --preset rnnencdec --source-vocab M/new/source.vocab --target-vocab a",
        "import marian a M/new --source-vocab M/new/source.vocab --target-vocab b",
        "import nematus a M/new --source-vocab b --target-vocab c --settings M/new/config.yaml",
    ],
)
def test_a_new_model_spares_what_it_is_made_of(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("M/new").mkdir()
    for name in ("source.vocab", "target.vocab", "config.yaml"):
        Path(f"M/new/{name}").write_bytes(b"content")
    assert "is also read, as M/new/" in refused(nmt_core, command, capfd)


def test_a_preparation_spares_its_settings(capfd: pytest.CaptureFixture[str]) -> None:
    Path("text").write_text("a b c\n" * 3)
    Path("d").mkdir()
    Path("settings").write_text("source_language: en\ntarget_language: fr\n")
    for name in ("d/train.en", "d/preparation.json"):
        os.link("settings", name)
        message = refused(nmt_core, "prepare --source text --target text --config settings --output d/train", capfd)
        assert "settings would be overwritten; choose another --output" in message
        os.unlink(name)


@pytest.mark.parametrize("restart", ["", "--restart"])
def test_a_tuning_loop_spares_what_it_begins_with(restart: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("tuning").mkdir()
    for name in ("lock", "state.json", "round3.ini"):
        Path("tuning", name).write_text(INI)
    command = f"tune-loop tuning/round3.ini --source a --reference b --working-dir tuning --output o {restart}"
    assert "tuning/round3.ini is also read" in refused(smt_bridge, command, capfd).replace(
        " of --working-dir tuning", ""
    )


def test_python_spares_them_too(capfd: pytest.CaptureFixture[str]) -> None:
    os.symlink("list", "other")
    for output in ("other", "hard", "M/source.vocab"):
        with pytest.raises(Exception, match="is also read and would be lost"):
            rescore_table("list", output, "M")


@pytest.mark.parametrize(
    ("program", "command", "to"),
    [
        ("nmt_core", "vocab text", "text"),
        ("nmt_core", "aer text text", "text"),
        ("nmt_core", "score --model M text text", "text"),
        ("nmt_core", "prune --model M --fraction 0.5 --output new", "M/config.yaml"),
        ("nmt_core", "prepare --replay text", "text"),
        ("nmt_core", "client translate text", "text"),
        ("smt_bridge", "graph nbest graphs --ini moses.ini", "graphs/0.gz"),
        ("smt_bridge", "graph search graphs --ini moses.ini --model M --source text", "tables/phrases.gz"),
        ("smt_bridge", "graph list-posteriors list", "list.json"),
    ],
)
def test_nothing_is_appended_to_an_input(
    program: str, command: str, to: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("text").write_bytes(b"content")
    Path("graphs").mkdir()
    Path("graphs/0.gz").write_bytes(b"content")
    with open(to, "ab") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert "standard output is also read, as " in refused(
            {"nmt_core": nmt_core, "smt_bridge": smt_bridge}[program], command, capfd
        )


def test_a_graph_may_be_searched_beside_the_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("graphs").mkdir()
    Path("graphs/0.gz").write_bytes(b"content")
    with open("graphs/list", "wb") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert "is also" not in refused(smt_bridge, "graph nbest graphs --ini moses.ini", capfd)
