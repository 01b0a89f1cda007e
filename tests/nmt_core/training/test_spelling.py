"""Hybrid word-character models in training: they learn to spell, resume exactly, and keep their characters."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.model_directory.settings import read_settings
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.data.partitions import Partition, WordChoice
from nmt_core.training.optimizer import WordTables
from tests.model_files import open_pair_scorer
from tests.searching import open_translator
from tests.spelling_models import spelling_model

SMALL = {"embedding": 12, "hidden": 12, "depth": 1, "dropout": 0.0, "init_range": 0.3}
NAMES = ["".join(letters) for letters in itertools.product("abcde", repeat=2)]
COPIED = ["abc", "bca", "cab", "acc", "bba"]
FRAMES = [("the {} is", "la {} de"), ("of {}", "{} b"), ("{} of the", "la b {}")]


def write(folder: Path, *, names: list[str], frames: list[tuple[str, str]] = FRAMES) -> None:
    """Names are copied; all other words are in the vocabularies."""
    pairs = [(source.format(name), target.format(name)) for name in names for source, target in frames]
    (folder / "s").write_text("".join(f"{source}\n" for source, _ in pairs))
    (folder / "t").write_text("".join(f"{target}\n" for _, target in pairs))
    (folder / "s.words").write_text("</s>\n<unk>\nthe\nof\nis\n")
    (folder / "t.words").write_text("</s>\n<unk>\nla\nde\nb\n")


def settings_of(folder: Path, name: str, model: dict, training: dict) -> Path:
    files = {key: str(folder / value) for key, value in (("source", "s"), ("target", "t"))}
    vocabularies = {"source_vocabulary": str(folder / "s.words"), "target_vocabulary": str(folder / "t.words")}
    settings = {
        "folder": str(folder / name),
        "model": {"type": "hybrid", **SMALL, **model},
        "data": {**files, "hold_out": 4, **vocabularies},
        "training": {
            "batch_sentences": 16,
            "select_by": "nll",
            "optimizer": "adam",
            "learning_rate": 0.01,
            "gradient": "word",
            **training,
        },
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def train(folder: Path, name: str = "m", model: dict | None = None, *options: str, **training: object) -> int:
    path = settings_of(folder, name, model or {}, training)
    return main(["train", str(path), "--quiet", "--device", "cpu", *options])


def test_it_learns_to_spell_what_it_reads(tmp_path: Path) -> None:
    """Names, which are in no vocabulary, are copied letter by letter."""
    pairs = [(source.format(name), target.format(name)) for name in COPIED for source, target in FRAMES[:2]]
    write(tmp_path, names=COPIED * 3, frames=FRAMES[:2])
    model = {"embedding": 16, "hidden": 24, "initialisation": "glorot"}
    assert train(tmp_path, "m", model, max_updates=400, validate_every=400) == 0
    config = read_settings(str(tmp_path / "m")).model
    assert isinstance(config, HybridConfig)
    assert set(config.source_characters) == set("abcthefois")
    found = open_translator([str(tmp_path / "m")], config=DecodingConfig(beam=3)).translate([one for one, _ in pairs])
    assert [nbest[0].text for nbest in found] == [target for _, target in pairs]
    asked = [SentencePair("the abc is", "la abc de"), SentencePair("the abc is", "la bca de")]
    right, wrong = open_pair_scorer([str(tmp_path / "m")]).score(asked)
    assert right.log_prob > wrong.log_prob + 2


@pytest.mark.parametrize("how", [{}, {"precision": "bfloat16"}, {"partition_words": 5, "optimizer": "sgd"}])
def test_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path, how: dict) -> None:
    write(tmp_path, names=NAMES[:10])
    for name, stops in (("whole", [8]), ("parts", [3, 8])):
        for stop in stops:
            resumed = ["--resume"] if stop != stops[0] else []
            options = {"max_updates": stop, "validate_every": 4, "batch_sentences": 4, **how}
            assert train(tmp_path, name, {"dropout": 0.2}, *resumed, **options) == 0
    whole, parts = (dict(load_model(str(tmp_path / name)).model.named_parameters()) for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@torch.no_grad()
def test_with_some_words_in_training_sources_are_read_as_with_all() -> None:
    """Words of a partition have other ids and a narrow table; those that are spelled are in no table."""
    loaded = spelling_model(source=Vocabulary([*SPECIAL_WORDS, "the", "of", "is", "tux"]))
    model, words_C = loaded.model, torch.tensor([0, 1, 3, 5])
    batch = Batch(
        model.collate([loaded.encode_text(text) for text in ("of axolotl of tux", "quokka", "")]),
        model.collate_targets([loaded.encode_target(text) for text in ("la abba", "dad b", "la")]),
    )
    partition = Partition(0, [], WordChoice(words_C), WordChoice(torch.tensor([0, 1, 2, 4])))
    whole = model.known_targets(batch)
    tables = WordTables(model, torch.optim.SGD(model.parameters(), lr=0.1))
    tables.narrow(words_C, partition.target.words_C)
    narrow = model.known_targets(partition.local(batch))
    assert torch.equal(narrow.readouts_BTL, whole.readouts_BTL)
    assert narrow.starts_MH is not None and whole.starts_MH is not None
    assert torch.equal(narrow.starts_MH, whole.starts_MH)


def test_the_folder_has_the_characters_and_its_fingerprint_changes_with_them(tmp_path: Path) -> None:
    write(tmp_path, names=["a'ä", "ß\u2028|", '"#: {', "0123", "\u200dx"], frames=[("of {}", "la {}")] * 4)
    assert train(tmp_path, max_updates=1) == 0
    folder = tmp_path / "m"
    loaded = load_model(str(folder))
    assert isinstance(loaded.config.model, HybridConfig)
    assert set("a'äß\u2028|\"#:{0123\u200dx") <= set(loaded.config.model.target_characters)
    text = yaml.safe_load((folder / "config.yaml").read_text())
    text["model"]["target_characters"] = text["model"]["target_characters"][::-1]
    (folder / "config.yaml").write_text(yaml.safe_dump(text))
    assert load_model(str(folder)).fingerprint != loaded.fingerprint


def test_a_run_with_other_characters_is_refused(tmp_path: Path, error_line: Callable[..., str]) -> None:
    write(tmp_path, names=NAMES[:10])
    assert train(tmp_path, max_updates=2, validate_every=2) == 0
    given = {"target_characters": "xyz"}
    error = error_line(train, tmp_path, "m", given, "--resume", max_updates=4, validate_every=2)
    assert "model.target_characters was" in error
    error = error_line(train, tmp_path, "n", given, max_updates=2, start_from=str(tmp_path / "m"))
    assert "training.start_from" in error and "model.target_characters" in error
    write(tmp_path, names=["zz", "yy", *NAMES[:10]])  # what is begun with keeps its characters
    assert train(tmp_path, "n", max_updates=2, start_from=str(tmp_path / "m")) == 0
    begun = read_settings(str(tmp_path / "n")).model
    assert isinstance(begun, HybridConfig)
    assert "z" not in begun.target_characters


def test_an_untrained_model_spells_with_the_characters_of_its_vocabularies(tmp_path: Path) -> None:
    write(tmp_path, names=NAMES[:3])
    vocabularies = ["--source-vocab", str(tmp_path / "s.words"), "--target-vocab", str(tmp_path / "t.words")]
    sizes = [option for key in ("hidden", "embedding") for option in ("--set", f"model.{key}=4")]
    given = ["--set", "model.source_characters=xy"]
    assert main(["init", str(tmp_path / "i"), "--preset", "luong2016-hybrid", *vocabularies, *sizes, *given]) == 0
    config = read_settings(str(tmp_path / "i")).model
    assert isinstance(config, HybridConfig)
    assert (config.source_characters, config.target_characters) == ("xy", "ladeb")
