"""Model folders are replaced as a whole: whatever happens meanwhile, what loads is the old model or the new one."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt_core.base.errors import ModelError, NmtError
from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.model_directory.tensors import read_tensors, save_tensors
from nmt_core.models.build import new_model
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.truecasing import TruecasingConfig
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.vocabulary import Vocabulary
from tests.annotated_models import make_annotated

_CALLS = ("mkdir", "rename", "replace", "rmdir", "fsync", "chmod", "open", "unlink", "makedirs")
_FILES = ["config.yaml", "model.safetensors", "source.vocab", "target.vocab"]


def _save(folder: str, *, words: int) -> None:
    """A model of which every file says how many words it has."""
    vocabulary = Vocabulary(["</s>", "<unk>", *(f"w{number}" for number in range(words))])
    config = RNNencdecConfig(embedding=2, hidden=2, maxout=1, dropout=words / 100)
    model = new_model(config, len(vocabulary), len(vocabulary), seed=words)
    save_model(folder, model, vocabulary, vocabulary, FolderConfig(model=config, trained_with={"words": words}))


def _words(folder: str) -> int:
    """Which model it is; all parts must be of the same."""
    loaded = load_model(folder)
    words = len(loaded.source) - 2
    assert (len(loaded.target), loaded.config.trained_with) == (words + 2, {"words": words})
    assert loaded.model.config.dropout == words / 100
    return words


def _in_child(work: Callable[[], None]) -> bool:
    """Run in a child that may be killed; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def _killed_at(call: int) -> None:
    """The process is killed when it makes this call to the operating system, counted from 0."""
    left = [call]

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return function(*args, **options)

        return counted

    for name in _CALLS:
        setattr(os, name, guarded(getattr(os, name)))


def test_of_two_that_save_at_once_the_second_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path / "model")
    _save(folder, words=1)

    def save_other(words: Vocabulary, path: str) -> None:
        monkeypatch.undo()
        with pytest.raises(NmtError, match="another program is writing it"):
            _save(folder, words=3)
        words.save(path)

    monkeypatch.setattr(Vocabulary, "save", save_other)
    _save(folder, words=2)
    assert _words(folder) == 2


def test_killed_at_any_step_the_folder_holds_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    found = []
    _save(str(tmp_path / "old"), words=1)
    for step in range(1000):
        folder = str(shutil.copytree(tmp_path / "old", tmp_path / f"{step}"))

        def save(step: int = step, folder: str = folder) -> None:
            _killed_at(step)
            _save(folder, words=2)

        ended = _in_child(save)
        found.append(_words(folder))
        if ended:
            break
        _save(folder, words=3)
        assert _words(folder) == 3
        assert [re.sub("-[0-9a-f]{16}", "", name) for name in sorted(os.listdir(folder))] == _FILES
    assert len(found) > 20 and found == sorted(found) and set(found) == {1, 2}


def test_a_first_save_that_is_killed_leaves_no_half_model(tmp_path: Path) -> None:
    for step in range(0, 1000, 3):
        folder = str(tmp_path / f"{step}")

        def save(step: int = step, folder: str = folder) -> None:
            _killed_at(step)
            _save(folder, words=2)

        ended = _in_child(save)
        if ended:
            break
        if os.path.exists(os.path.join(folder, "config.yaml")):
            assert _words(folder) == 2
        else:
            with pytest.raises(ModelError, match=r"there is no such model directory|config\.yaml"):
                load_model(folder)
    assert ended


def test_a_model_is_loaded_without_what_only_compiling_and_tokenising_need(tmp_path: Path) -> None:
    """PyTorch's compiler and sacremoses take a large part of the time of a start."""
    folder = str(tmp_path / "m")
    _save(folder, words=1)
    program = (
        "import sys; from nmt_core.model_directory.loaded_model import load_model; "
        f"load_model({folder!r}); sys.exit(not sys.modules.keys().isdisjoint(['torch._dynamo', 'sacremoses']))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_who_reads_while_another_writes_gets_one_model_whole(tmp_path: Path) -> None:
    folder = str(tmp_path / "m")
    _save(folder, words=1)
    end = threading.Event()

    def write() -> None:
        number = 0
        while not end.wait(0.03 * (number % 4)):  # longer than a reader needs for a look, now and then
            number += 1
            _save(folder, words=number % 3 + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {_words(folder) for _ in range(30)} <= {1, 2, 3}
    finally:
        end.set()
        writer.join()


def test_an_error_while_saving_is_one_line_and_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "m")
    _save(folder, words=1)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    problem = r"cannot be written \(Directory not empty\); what it held before is unchanged$"
    with monkeypatch.context() as patch:
        patch.setattr(Vocabulary, "save", lambda *_: os.rmdir(folder))
        with pytest.raises(NmtError, match=f"m: {problem}"):
            _save(folder, words=2)
    monkeypatch.setattr(os, "fsync", full)
    problem = r"cannot be written \(No space left on device\); what it held before is unchanged$"
    with pytest.raises(
        NmtError, match=r"cannot be written \(No space left on device\); the older file, if any, is unt"
    ):
        _save(folder, words=2)
    with pytest.raises(NmtError, match=f"training.safetensors: {problem}"):
        save_tensors(f"{folder}/training.safetensors", {"a": torch.zeros(1)})
    monkeypatch.undo()
    assert _words(folder) == 1 and not any(name.startswith(".") for name in os.listdir(folder))


def test_tensors_and_then_their_name_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, path = os.fsync, tmp_path / "training.safetensors"
    synced: list[tuple[bool, bool]] = []

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path), path.exists()))

    monkeypatch.setattr(os, "fsync", noted)
    save_tensors(str(path), {"a": torch.zeros(1)})
    assert synced == [(False, False), (True, True)]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_permissions_of_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        _save(str(tmp_path / "m"), words=1)
        save_tensors(str(tmp_path / "m" / "training.safetensors"), {"a": torch.zeros(1)})
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "m").iterdir()}
    assert len(modes) == 5 and set(modes.values()) == {mode}


def test_what_may_not_be_read_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "model.safetensors")
    save_tensors(path, {"a": torch.zeros(1)})

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(ModelError, match=r"cannot be read \(Permission denied\)"):
        read_tensors(path)


def test_what_did_not_change_keeps_its_name_and_a_killed_saving_leaves_nothing_for_long(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    _save(str(folder), words=1)
    first = load_model(str(folder))
    (folder / "model-0123456789abcdef.safetensors").write_bytes(b"")
    (folder / "model-of-mine.safetensors").write_bytes(b"")
    with torch.no_grad():
        next(first.model.parameters()).mul_(2)
    first.save(str(folder))
    names = sorted(os.listdir(folder))
    (parameters,) = set(names) - {"config.yaml", "model-of-mine.safetensors", "source.vocab", "target.vocab"}
    assert load_model(str(folder)).config.files == {"model.safetensors": parameters} and len(names) == 5
    assert load_model(str(shutil.copytree(folder, tmp_path / "n"))).fingerprint == load_model(str(folder)).fingerprint


def test_another_lexicon_or_preparation_has_a_name_of_its_own(tmp_path: Path) -> None:
    folder = make_annotated(tmp_path, "m", "posunk")[0]
    changed = CarriedLexicon.of(Lexicon({"a": (Candidate("b", 0.5),)}))
    for count in (1, 2):
        settings = PreparationConfig(target_language="de", truecasing=TruecasingConfig())
        made = BundledPreprocessor.of_corpus(settings, {"truecasing.de": b"der\t%d\n" % count}, ["a"])
        dataclasses.replace(load_model(folder), lexicon=changed, preparation=made).save(folder)
        loaded = load_model(folder)
        assert loaded.preparation == made and len(os.listdir(f"{folder}/preparation")) == 2
    assert loaded.lexicon is not None and loaded.lexicon.content == changed.content
    assert re.fullmatch(r"lexicon-[0-9a-f]{16}\.gz", loaded.config.files["lexicon.gz"])


@pytest.mark.parametrize("version", [1, 2])
def test_directories_of_older_formats_load_and_are_replaced(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "m"
    _save(str(folder), words=1)
    fingerprint = load_model(str(folder)).fingerprint
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    assert settings.pop("files") == {} and sorted(os.listdir(folder)) == _FILES
    (folder / "config.yaml").write_text(yaml.safe_dump({**settings, "format_version": version}))
    assert load_model(str(folder)).fingerprint == fingerprint
    _save(str(folder), words=2)
    assert _words(str(folder)) == 2 and len(os.listdir(folder)) == 4


def test_a_new_folder_for_which_the_disk_has_no_space_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Vocabulary, "save", full)
    for folder in (tmp_path / "new", tmp_path / "old"):
        if folder.name == "old":
            folder.mkdir()
        with pytest.raises(
            NmtError, match=r"cannot be written \(No space left on device\); the older file, if any, is"
        ):
            _save(str(folder), words=1)
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]
