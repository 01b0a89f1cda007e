"""The fingerprint covers all of a model directory that decides a number, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.processing import TextConfig
from nmt_core.text.vocabulary import Vocabulary
from tests.annotated_models import make_annotated
from tests.prepared_models import KINDS, make_model

OTHERS: dict[str, object] = {
    "source_language": "de",
    "target_language": "de",
    "normalize_punctuation": False,
    "aggressive_hyphens": True,
    "escape": False,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = Vocabulary(["</s>", "<unk>", "one", "two"])
    config = RNNsearchConfig(embedding=3, hidden=4, maxout=2, alignment=3)
    save_model(str(tmp_path / "m"), new_model(config, 4, 4, seed=1), words, words, FolderConfig(model=config))
    return tmp_path / "m"


def change(folder: Path, key: str, value: object) -> None:
    """Write another setting into ``config.yaml``."""
    path = folder / "config.yaml"
    settings: dict[str, Any] = yaml.safe_load(path.read_text())
    *groups, last = key.split(".")
    place = settings
    for group in groups:
        place = place[group]
    place[last] = value
    path.write_text(yaml.safe_dump(settings))


def fingerprint(folder: Path) -> str:
    return load_model(str(folder)).fingerprint


def test_every_rule_of_raw_text_is_in_the_fingerprint(folder: Path) -> None:
    assert OTHERS.keys() == TextConfig.model_fields.keys()
    found = {fingerprint(folder)}
    for key, value in OTHERS.items():
        other = Path(shutil.copytree(folder, folder.parent / key))
        change(other, f"text.{key}", value)
        found.add(fingerprint(other))
    assert len(found) == 1 + len(OTHERS)


def test_each_preparation_has_a_fingerprint_of_its_own(folder: Path, tmp_path: Path) -> None:
    """Models of the same tensors, words and languages, whose text is prepared in other ways."""
    plain = load_model(str(folder))
    found = {plain.fingerprint}
    for kind in ("words", "bpe"):
        (tmp_path / kind).mkdir()
        made = load_model(str(make_model(tmp_path / kind, KINDS[kind])))
        text = FolderConfig(model=plain.config.model)
        save_model(str(tmp_path / f"{kind}-model"), plain.model, plain.source, plain.target, text, made.preparation)
        found.add(fingerprint(tmp_path / f"{kind}-model"))
    assert len(found) == 3


def test_tensors_words_and_their_order_are_in_the_fingerprint(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(str(folder))
    other_words, other_model = Vocabulary(["</s>", "<unk>", "two", "one"]), new_model(loaded.config.model, 4, 4, seed=2)
    found = {loaded.fingerprint}
    for number, (model, source, target) in enumerate(
        [
            (loaded.model, other_words, loaded.target),
            (loaded.model, loaded.source, other_words),
            (other_model, loaded.source, loaded.target),
        ]
    ):
        save_model(str(tmp_path / str(number)), model, source, target, FolderConfig(model=loaded.config.model))
        found.add(fingerprint(tmp_path / str(number)))
    change(folder, "target_order", "right-to-left")
    assert len(found | {fingerprint(folder)}) == 5


@pytest.mark.parametrize("key", ["copying", "lexicon"])
def test_how_annotated_text_is_read_is_in_the_fingerprint(tmp_path: Path, key: str) -> None:
    folder = Path(make_annotated(tmp_path, "m", "posall")[0])
    before = fingerprint(folder)
    load_model(str(folder)).save(str(tmp_path / "copy"))
    assert fingerprint(tmp_path / "copy") == before
    change(folder, key, None)
    assert fingerprint(folder) != before


def test_how_and_where_a_model_was_trained_is_no_part_of_it(folder: Path, tmp_path: Path) -> None:
    before = fingerprint(folder)
    change(folder, "trained_with", {"updates": 7})
    change(folder, "model.dropout", 0.5)
    assert fingerprint(folder.rename(tmp_path / "elsewhere")) == before
