"""What a run is: its folder, what may change when it is resumed, which model it leaves, and what it tells."""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import math
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import save_file

from nmt_core.base.errors import ModelError, NmtError
from nmt_core.commands.main import main
from nmt_core.model_directory.tensors import read_tensors
from nmt_core.training.config import RunConfig
from nmt_core.training.fingerprint import RunIdentity
from nmt_core.training.report import Reporter
from nmt_core.training.start import prepare
from nmt_core.training.state import Progress, check_disk_space, restore_state, save_state, size_of_state
from nmt_core.training.trainer import Trainer
from nmt_core.training.validation import Validation
from tests.model_files import parameters_file


def scripted(runs, monkeypatch: pytest.MonkeyPatch, scores: dict[str, list[float]]) -> None:
    """Validations find these numbers, one after the other, and averages theirs."""
    measure = Trainer._measure

    def measured(self: Trainer) -> Validation:
        found = measure(self)
        averaging = bool(self.progress.history) and self.progress.history[-1].update == self.progress.update
        nats = scores["average" if averaging else "run"].pop(0)
        return dataclasses.replace(found, nats_per_word=nats)

    monkeypatch.setattr(Trainer, "_measure", measured)


def test_a_worse_model_does_not_replace_an_average_after_resuming(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(runs, monkeypatch, {"run": [3.0, 2.5, 2.0], "average": [1.0, 1.5]})
    runs.write("run", select_by="nll", average=2, max_updates=12)
    assert runs.go_on("run") == 0
    averaged = runs.model("run")
    assert runs.go_on("run", "training.max_updates=18") == 0
    runs.assert_equal(runs.model("run"), averaged)
    assert runs.progress("run")["kept"]["nats_per_word"] == 1.0
    assert runs.progress("run")["best"]["nats_per_word"] == 2.0


def test_stopping_between_validations_counts_for_nothing(runs) -> None:
    state = runs.assert_resumes_exactly(decay_patience=1, decay=0.7, select_by="nll", average=2, learning_rate=1e-9)
    assert state  # with learning rates that differ the moments of Adadelta would, too
    whole, parts = (runs.progress(name) for name in ("whole", "parts"))
    assert [entry["update"] for entry in parts["history"]] == [6, 12, 18, 24, 30]
    for key in ("learning_rate", "since_best", "since_decay", "best", "history", "cursors"):
        assert whole[key] == parts[key], key


def test_a_first_validation_that_is_no_number_is_never_the_best(
    runs, error_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(runs, monkeypatch, {"run": [math.nan, math.nan, 5.0, math.nan]})
    runs.write("none", select_by="nll", max_updates=1)
    problem = "no validation gave a number, so that there is no model; lower training.learning_rate"
    assert error_line(runs.go_on, "none").endswith(f"none: {problem}")
    runs.write("run", select_by="nll", max_updates=18)
    assert runs.go_on("run", "training.max_updates=12") == 0
    assert runs.go_on("run") == 0
    assert runs.progress("run")["best"]["update"] == 12


@pytest.mark.parametrize("by", ["bleu", "nll"])
def test_models_whose_probabilities_are_no_numbers_lose(by: str) -> None:
    bad, good = Validation(1, math.nan, 50.0), Validation(2, 9.0, 0.0)
    assert good.better_than(bad, by)
    assert good.better_than(None, by)
    assert not bad.better_than(None, by)
    assert not Validation(3, math.inf, 50.0).better_than(good, by)


def test_a_loss_that_is_no_number_is_one_line_with_its_update(runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.write("run", max_updates=60, validate_every=100, select_by="nll")
    config = RunConfig.from_mapping({**_settings(runs, "run")}, origin="test")
    prepared = prepare(config)
    trainer = Trainer(
        prepared.tasks,
        config.training,
        run=prepared.identity,
        reporter=Reporter(config.training, quiet=True),
    )
    os.makedirs(config.folder)
    with torch.no_grad():
        next(iter(trainer.trained.values())).fill_(math.nan)
    with pytest.raises(ModelError) as caught:
        trainer.train()
    found = "update 21: the loss is nan and the norm of the gradient nan, 21 times in a row"
    what_to_do = "lower training.learning_rate, or resume from the last good state with --resume"
    assert str(caught.value) == f"{config.folder}: {found}; {what_to_do}"
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["update 1: the loss is nan and the norm of the gradient nan; it is left out"]


def _settings(runs, name: str) -> dict:
    return yaml.safe_load(Path(runs.file(f"{name}.yaml")).read_text())


# --- what may change


def test_what_is_another_is_said_in_words() -> None:
    run = RunIdentity({"a": 1}, {"a": 0, "b": 2}, {"the text": "x"}, {"data.source": "new"})
    saved = json.loads(run.to_json())
    for change, said in (
        ({}, None),
        ({"settings": {}}, "a was 0 and is 1"),
        ({"settings": {"a": 1, "b": 3}}, "b was 3 and is 2"),
        ({"content": {"the text": "y"}}, "the text is another, since the content of a file changed"),
        ({"content": {}, "data": {}}, "the text is another; data.source was not given and is new"),
        ({"settings": [1]}, "it was saved by an older version of hybridmt"),
    ):
        assert run.difference(json.dumps({**saved, **change})) == said
    assert run.difference("") == "it was saved by an older version of hybridmt"


def test_a_damaged_state_is_one_line(tmp_path: Path) -> None:
    parameter, run = torch.nn.Parameter(torch.zeros(3)), RunIdentity({}, {}, {}, {})
    optimizer, path = torch.optim.Adam([parameter]), tmp_path / "training.safetensors"
    parameter.grad = torch.ones(3)
    optimizer.step()
    save_state(str(tmp_path), {"w": parameter}, optimizer, Progress(update=7), run)
    assert restore_state(str(tmp_path), {"w": parameter}, optimizer, run) == Progress(update=7)
    tensors, metadata = read_tensors(str(path))
    again, two = "train again, or resume another run", torch.zeros(2)
    size = "is 2 but the run and the vocabularies ask for 3; were a vocabulary or the settings changed after training?"
    for counters, harm, problem in (
        ({"progress": "{"}, {}, f"its counters are damaged; {again}"),
        ({}, {"random": tensors["random"] * 0}, f"its random state is damaged; {again}"),
        *(({}, {name: two}, f"{name} {size}") for name in ("parameter.w", "optimizer.exp_avg.w")),
        *(({}, {name: two}, f"the parameter {name} is not expected; the run describes another model")
          for name in ("parameter.x", "optimizer.exp_avg.x")),
    ):  # fmt: skip
        save_file({**tensors, **harm}, path, {**metadata, **counters})
        with pytest.raises(ModelError) as caught:
            restore_state(str(tmp_path), {"w": parameter}, optimizer, run)
        assert str(caught.value) == f"{path}: {problem}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.label_smoothing=0.1", "training.label_smoothing was 0.0 and is 0.1"),
        ("training.seed=9", "training.seed was 1 and is 9"),
        ("model.dropout=0.3", "model.dropout was 0.1 and is 0.3"),
        ("text.escape=false", "text.escape was True and is False"),
        ("data.max_length=3", "the training text is another; data.max_length was 50 and is 3"),
        ("data.dev_source={place}/dev2.s data.dev_target={place}/dev2.t", "the development set is another"),
    ],
)
def test_resuming_names_what_is_another(runs, error_line: Callable[..., str], change: str, message: str) -> None:
    runs.write("run", max_updates=3)
    assert runs.go_on("run") == 0
    assert message in error_line(runs.go_on, "run", *change.format(place=runs.place).split())


@pytest.mark.parametrize("size", [10**7 - 1, 10**17 - 1])
def test_a_model_that_is_larger_than_memory_is_one_line(runs, error_line: Callable[..., str], size: int) -> None:
    runs.write("run", model={"hidden": size}, max_updates=1)
    assert "train: model: " in error_line(runs.go_on, "run")


def test_a_new_run_replaces_neither_a_run_nor_a_model(runs, error_line: Callable[..., str]) -> None:
    path = runs.write("run", max_updates=1)
    assert runs.go_on("run") == 0
    for problem in ("a run was started here", "holds a model already"):
        assert problem in error_line(main, ["train", path, "--device", "cpu"])
        Path(runs.file("run/training.safetensors")).unlink(missing_ok=True)


def test_a_directory_may_have_the_name_of_a_setting(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.place)
    runs.write("run", others={"folder": "auto"}, max_updates=1)
    assert runs.go_on("run") == 0


@pytest.mark.parametrize("name", ["train.s", "dev.t"])
def test_a_file_of_the_same_name_with_other_content_is_noticed(runs, error_line: Callable[..., str], name: str) -> None:
    runs.write("run", max_updates=3)
    assert runs.go_on("run") == 0
    path = Path(runs.file(name))
    first, second, rest = path.read_text().split("\n", 2)
    path.write_text("\n".join([second, first, rest]))
    what = "training text" if name == "train.s" else "development set"
    assert f"the {what} is another, since the content of a file changed" in error_line(runs.go_on, "run")


def test_a_changed_model_to_start_from_is_noticed(runs, error_line: Callable[..., str]) -> None:
    for name in ("one", "two"):
        runs.write(name, max_updates=2, seed=len(name) + ord(name[0]))
        assert runs.go_on(name) == 0
    files = {name: runs.file(f"one/{name}.vocab") for name in ("source", "target")}
    data = {f"{name}_vocabulary": path for name, path in files.items()}
    runs.write("run", max_updates=2, start_from=runs.file("one"), data=data)
    assert runs.go_on("run") == 0
    assert "the model of training.start_from is another" in error_line(
        runs.go_on, "run", f"training.start_from={runs.file('two')}"
    )


def test_beside_a_model_to_start_from_a_part_of_the_model_is_enough(runs, error_line: Callable[..., str]) -> None:
    runs.write("one", max_updates=2)
    assert runs.go_on("one") == 0
    path = Path(runs.write("run", max_updates=2, start_from=runs.file("one")))
    settings = yaml.safe_load(path.read_text())
    for model, text in (({"dropout": 0.3}, {"escape": False}), ({"type": "rnnsearch", "embedding_dropout": 0.1}, {})):
        folder = runs.file(str(len(model)))
        path.write_text(yaml.safe_dump({**settings, "model": model, "text": text, "folder": folder}))
        assert runs.go_on("run") == 0
        saved = yaml.safe_load(Path(folder, "config.yaml").read_text())
        first = yaml.safe_load(Path(runs.file("one/config.yaml")).read_text())
        assert saved["model"] == {**first["model"], **model}
        assert saved["text"] == {**first["text"], **text}
    for model, message in (
        ({"hidden": 9}, "model.hidden (8, not 9)"),
        ({"type": "rnnencdec"}, "model.type (rnnsearch"),
    ):
        path.write_text(yaml.safe_dump({**settings, "model": model, "folder": runs.file("other")}))
        assert f"one has another {message}" in error_line(runs.go_on, "run")


def test_what_cannot_change_weights_does_not_count(runs) -> None:
    runs.write("run", max_updates=3)
    assert runs.go_on("run") == 0
    for name in ("train.s", "dev.t"):
        shutil.copy(runs.file(name), runs.file(f"copy.{name}"))
    changes = ["patience=3", "max_minutes=5", "save_every=1", "keep_best=2", "max_epochs=9", "max_updates=5"]
    files = [f"data.source={runs.file('copy.train.s')}", f"data.dev_target={runs.file('copy.dev.t')}"]
    assert runs.go_on("run", *(f"training.{change}" for change in changes), *files) == 0
    assert runs.progress("run")["update"] == 5


@pytest.mark.parametrize(("limit", "updates"), [("patience=2", 18), ("max_epochs=1", 24), ("max_updates=25", 25)])
def test_a_run_ends_at_its_limit(runs, monkeypatch: pytest.MonkeyPatch, limit: str, updates: int) -> None:
    """An epoch has 24 updates, and a model that is not better counts for the patience."""
    scripted(runs, monkeypatch, {"run": [3.0, 4.0, 3.5, 2.0, 1.0]})
    runs.write("run", select_by="nll", max_updates=30)
    assert runs.go_on("run", f"training.{limit}") == 0
    assert runs.progress("run")["update"] == updates


# --- the folder


def test_a_folder_that_cannot_be_made_is_told_before_the_text_is_read(runs, error_line: Callable[..., str]) -> None:
    Path(runs.file("file")).write_text("")
    runs.write("run", data={"source": "/nowhere"})
    assert f"{runs.file('file')}/run: cannot be written" in error_line(
        runs.go_on, "run", f"folder={runs.file('file')}/run"
    )


def test_two_runs_into_one_folder_are_told_at_once(runs, error_line: Callable[..., str]) -> None:
    runs.write("run", data={"source": "/nowhere"})
    os.makedirs(runs.file("run"))
    with open(runs.file("run/.training.hybridmt.lock"), "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "run: another program is writing it" in error_line(runs.go_on, "run")
    assert "/nowhere" in error_line(runs.go_on, "run")  # a lock that nobody holds, as kill -9 leaves it
    assert os.listdir(runs.file("run")) == []  # it was there before


def test_a_full_disk_is_reported_before_training(runs, error_line: Callable[..., str]) -> None:
    runs.write("run", max_updates=3)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        assert "cannot hold the" in error_line(runs.go_on, "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not os.path.exists(runs.file("run"))


def test_space_is_tried_out_without_a_name_and_beside_what_a_run_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So ``kill -9`` leaves no file of the size of a run, and one that a full disk stopped goes on when it can."""
    seen: list[tuple[list[str], int]] = []
    monkeypatch.setattr(os, "posix_fallocate", lambda _, __, size: seen.append((sorted(os.listdir(tmp_path)), size)))
    check_disk_space(str(tmp_path), 1000)
    (tmp_path / "training.safetensors").write_bytes(b"x" * 400)
    (tmp_path / "model-0123456789abcdef.safetensors").write_bytes(b"x" * 100)
    check_disk_space(str(tmp_path), 1000)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(NmtError) as caught:
        check_disk_space(str(tmp_path), 2_500_000_500)
    problem = "cannot hold the 2.5 GB that a run writes (No space left on device)"
    assert str(caught.value) == f"{tmp_path}: {problem}; free some space or choose another directory"
    assert size_of_state({"w": torch.nn.Parameter(torch.zeros(3))}) == 96  # twice parameters, two moments and the model
    assert seen == [([], 1000), (["model-0123456789abcdef.safetensors", "training.safetensors"], 500)]


def test_a_disk_that_fills_up_later_is_one_line_and_loses_nothing(
    runs, error_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write("run", max_updates=6)
    assert runs.go_on("run") == 0
    before = {path: path.read_bytes() for path in Path(runs.file("run")).iterdir() if path.is_file()}
    monkeypatch.setattr("nmt_core.training.run.check_disk_space", lambda *_: None)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, limits[1]))
    try:
        assert "cannot be written" in error_line(runs.go_on, "run", "training.max_updates=12")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path: path.read_bytes() for path in Path(runs.file("run")).iterdir() if path.is_file()} == before
    assert runs.go_on("run", "training.max_updates=12") == 0


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_is_removed_meanwhile_is_not_made_again(
    runs, error_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Nor is one of the same name written to, which may be another run's."""
    before = os.listdir(os.path.dirname(runs.file("run")))
    runs.write("run", max_updates=6)
    measure = Trainer._measure

    def removing(self: Trainer) -> Validation:
        shutil.rmtree(runs.file("run"))
        if again:
            os.mkdir(runs.file("run"))
            Path(runs.file("run/notes")).touch()
        return measure(self)

    monkeypatch.setattr(Trainer, "_measure", removing)
    assert f"{runs.file('run')}: was removed, or moved away, while the run was at work" in error_line(runs.go_on, "run")
    if again:
        assert os.listdir(runs.file("run")) == ["notes"]
    else:
        assert set(os.listdir(os.path.dirname(runs.file("run")))) - set(before) <= {"run.yaml"}


# --- what is saved and kept


def test_the_state_is_saved_between_validations_and_changes_no_number(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    save = Trainer._save_state

    def counting(self: Trainer) -> None:
        saved.append(self.progress.update)
        save(self)

    monkeypatch.setattr(Trainer, "_save_state", counting)
    options = {"max_updates": 13, "partition_words": 24}
    runs.write("often", save_every=1e-9, **options)
    runs.write("rarely", **options)
    assert runs.go_on("often") == 0
    assert sorted(set(saved)) == list(range(1, 14))
    saved.clear()
    assert runs.go_on("rarely") == 0
    assert saved == [6, 12, 13]
    runs.assert_equal(runs.state("often"), runs.state("rarely"))


def test_the_best_models_and_those_of_every_so_many_updates_are_kept(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(runs, monkeypatch, {"run": [3.0, 1.0, 2.0, 4.0]})
    runs.write("run", select_by="nll", keep_best=2, keep_every=5, max_updates=24)
    assert runs.go_on("run") == 0
    kept = sorted(os.listdir(runs.file("run/snapshots")))
    assert [int(name) for name in kept] == [5, 10, 12, 15, 18, 20]
    snapshots = [runs.file(f"run/snapshots/{number:09d}") for number in (12, 18)]
    runs.assert_equal(runs.model("run"), runs.model("run/snapshots/000000012"))
    assert main(["average", *snapshots, "--output", runs.file("mean")]) == 0
    for name, mean in runs.model("mean").items():
        parts = [runs.model(f"run/snapshots/{number:09d}")[name].double() for number in (12, 18)]
        torch.testing.assert_close(mean, (sum(parts) / 2).float(), rtol=0, atol=0)


@pytest.mark.parametrize("average", [1, 3])
def test_models_of_every_so_many_updates_stay_where_the_setting_goes(
    runs, monkeypatch: pytest.MonkeyPatch, average: int
) -> None:
    """At update 18 the model of update 12 is one of the last three, too."""
    scripted(runs, monkeypatch, {"run": [3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0], "average": [9.0, 9.0]})
    runs.write("run", select_by="nll", average=average, keep_every=4, max_updates=18)
    assert runs.go_on("run") == 0
    runs.write("run", select_by="nll", average=average, max_updates=42)
    assert runs.go_on("run") == 0
    kept = {int(name) for name in os.listdir(runs.file("run/snapshots"))}
    assert kept >= {4, 8, 12, 16} and 6 not in kept and 18 not in kept


def test_average_does_not_overwrite_a_model(runs, error_line: Callable[..., str]) -> None:
    runs.write("run", max_updates=2)
    assert runs.go_on("run") == 0
    before = parameters_file(runs.file("run")).read_bytes()
    shutil.copytree(runs.file("run"), runs.file("other"))
    for output, problem in (("run", "is also read"), ("other", "holds a model already")):
        assert problem in error_line(main, ["average", runs.file("run"), "--output", runs.file(output)])
    assert parameters_file(runs.file("run")).read_bytes() == before


@pytest.mark.parametrize(
    "data", [{}, {"dev_source": None, "dev_target": None, "hold_out": 4}], ids=["files", "held out"]
)
def test_development_sets_without_words_are_told_before_training(
    runs, error_line: Callable[..., str], data: dict[str, object]
) -> None:
    for name in ("dev", "train"):
        source = Path(runs.file(f"{name}.s"))
        source.write_text("\n" * len(source.read_text().splitlines()))
    runs.write("run", data=data)
    assert "nothing to validate on" in error_line(runs.go_on, "run")
    assert not Path(runs.file("run")).exists()
