"""Model folders: what is saved comes back, and what does not fit is refused in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
import yaml

from nmt_core.base.errors import ModelError
from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.layers.cells import CELLS
from nmt_core.model_directory.average import _alike
from nmt_core.model_directory.ensembles import signature_of, with_field
from nmt_core.model_directory.loaded_model import load_model, read_model, save_model
from nmt_core.model_directory.settings import FolderConfig, _without_gone, read_settings
from nmt_core.models.build import AnyConfig, build_model, new_model, settings_beside_parameters, source_factors
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.presets import PRESETS
from nmt_core.models.rnnsearch import RNNsearch
from nmt_core.text.copying import CopyScheme
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.version import VERSION


@pytest.fixture
def folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "s").write_text("</s>\n<unk>\nun\ndeux\n")
    (tmp_path / "t").write_text("</s>\t9\n<unk>\t0\none\t5\ntwo\t4\n")
    sizes = ["--set", "model.hidden=4", "--set", "model.embedding=3", "--set", "model.maxout=2"]
    vocabularies = ["--source-vocab", str(tmp_path / "s"), "--target-vocab", str(tmp_path / "t")]
    capfd.readouterr()
    assert main(["init", str(tmp_path / "m"), "--preset", "rnnencdec-cho2014", *vocabularies, *sizes]) == 0
    assert capfd.readouterr().err == f"{tmp_path / 'm'}: rnnencdec, 0.0 M parameters, untrained\n"
    return tmp_path / "m"


def test_a_folder_may_have_a_name_that_is_not_utf8(folder: Path) -> None:
    before = load_model(str(folder)).fingerprint
    other = folder.rename(folder.parent / "b\udcff")
    assert load_model(str(other)).fingerprint == before


def shapes(config: AnyConfig) -> dict[str, torch.Size]:
    with torch.device("meta"):
        return {
            name: parameter.shape
            for name, parameter in build_model(config, 9, 9, [9] * source_factors(config)).named_parameters()
        }


def others(kind: Any) -> Iterator[Any]:
    """Values of the type of a setting."""
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    yield from {bool: (False, True), int: (2, 3), float: (0.25, 0.75), str: ("ab", "ba", *CELLS)}.get(kind, ())
    for part in get_args(kind) if get_origin(kind) is not Literal else ():
        yield from others(part)


def changed(config: AnyConfig) -> Iterator[tuple[str, AnyConfig]]:
    """The settings with another value of one of them, and its name."""
    for key, field in type(config).model_fields.items():
        for value in (each for one in others(field.annotation) for each in (one, [one])):
            with contextlib.suppress(ValueError):
                other = type(config).model_validate({**config.to_mapping(), key: value})
                if other != config:
                    yield key, other


def small(name: str) -> AnyConfig:
    config = PRESETS[name]
    sizes = {"embedding": 8, "alignment": 6, "maxout": 4}
    given = {key: size for key, size in sizes.items() if key in type(config).model_fields}
    return type(config).model_validate(config.to_mapping() | given)


@pytest.mark.parametrize("name", PRESETS)
def test_settings_that_parameters_do_not_show_are_known(name: str) -> None:
    """All that leave the names and shapes of parameters alone, but for what only training reads."""
    config = small(name)
    of_training = {"initialisation", "init_range", "dropout", "embedding_dropout", "characters", "character_weight"}
    elsewhere = {"output_bias", "places", "source_characters", "target_characters"}  # in tensors, shapes, or always
    for key, other in changed(config):
        if key not in of_training | elsewhere and shapes(other) == shapes(config):
            assert settings_beside_parameters(other) != settings_beside_parameters(config), key


def test_every_setting_was_changed_for_that() -> None:
    """The hybrid rejects factors. Deep fusion has settings of other types, and ``trained``, which training reads."""
    types = {type(config): set(type(config).model_fields) for config in PRESETS.values()}
    for name in PRESETS:
        types[type(PRESETS[name])] -= {key for key, _ in changed(small(name))}
    assert set().union(*types.values()) == {"type", "source_factors"}
    assert set(get_args(AnyConfig)) - set(types) == {DeepFusionConfig}
    assert set(DeepFusionConfig.model_fields) == {"type", "translation", "language", "trained"}


@pytest.mark.parametrize(
    ("preset", "key", "value"),
    [
        ("rnnencdec-cho2014", "order", "look-generate-update"),
        ("luong2016-hybrid", "longest_spelling", 7),
    ],
)
def test_a_setting_that_changes_numbers_changes_the_fingerprint(
    tmp_path: Path, preset: str, key: str, value: object
) -> None:
    """Otherwise a long job would go on with the other model (docs/long-jobs.md)."""
    vocabulary, config = Vocabulary(["</s>", "<unk>", "one"]), PRESETS[preset]
    config = type(config).model_validate({**config.to_mapping(), "embedding": 4, "hidden": 4})
    model = new_model(config, 3, 3, seed=1)
    save_model(str(tmp_path / "m"), model, vocabulary, vocabulary, FolderConfig(model=config))
    before = load_model(str(tmp_path / "m")).fingerprint
    path = tmp_path / "m" / "config.yaml"
    settings = yaml.safe_load(path.read_text())
    settings["model"][key] = value
    path.write_text(yaml.safe_dump(settings))
    assert load_model(str(tmp_path / "m")).fingerprint != before


def test_init_gives_the_same_parameters_for_the_same_seed(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(str(folder))
    assert loaded.target.words == ("</s>", "<unk>", "one", "two")
    assert loaded.target.counts == (9, 0, 5, 4)
    assert loaded.config.model.summary == "tanh"
    again = load_model(str(folder), dtype=torch.float64)
    assert again.fingerprint == loaded.fingerprint
    assert next(again.model.parameters()).dtype == torch.float64


_LOADED = """
import sys
import torch
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.model_directory.loaded_model import load_model

def own_memory():
    with open("/proc/self/status") as stream:
        (line,) = (line for line in stream if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024

keep_memory_of_tensors()
before = own_memory()
loaded = load_model(sys.argv[1], dtype=torch.bfloat16)
print(own_memory() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for the memory of a process")
def test_of_a_model_in_bfloat16_nothing_in_float32_is_kept(tmp_path: Path) -> None:
    words = 20_000
    vocabulary = Vocabulary(["</s>", "<unk>", *map(str, range(words - 2))])
    config = PRESETS["rnnlm"].model_copy(update={"embedding": 2000, "hidden": 8, "maxout": 8})
    model = new_model(config, 2, words, seed=1)
    save_model(str(tmp_path / "m"), model, vocabulary, vocabulary, FolderConfig(model=config))
    in_float32 = 4 * sum(parameter.numel() for parameter in model.parameters())
    command = [sys.executable, "-c", _LOADED, str(tmp_path / "m")]
    taken = int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert taken < 0.75 * in_float32


def test_large_numbers_whose_sum_is_infinite_are_read(folder: Path) -> None:
    loaded = read_model(str(folder))
    with torch.no_grad():
        next(loaded.model.parameters()).fill_(3e38)
    loaded.save(str(folder))
    assert load_model(str(folder)).model.get_parameter("source_embedding.weight").min() == torch.tensor(3e38)


def test_tied_embeddings_stay_tied_when_loaded(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("</s>\n<unk>\none\ntwo\n")
    sizes = ["hidden=4", "embedding=3", "maxout=2", "alignment=2", "tied=true", "initialisation=glorot"]
    overrides = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    vocabularies = ["--source-vocab", str(tmp_path / "v"), "--target-vocab", str(tmp_path / "v")]
    assert main(["init", str(tmp_path / "m"), "--preset", "rnnsearch", *vocabularies, *overrides]) == 0
    settings = tmp_path / "m" / "config.yaml"
    settings.write_text(settings.read_text().replace("output_rank: null", "output_rank: 2"))  # once without effect
    model = load_model(str(tmp_path / "m")).model
    assert isinstance(model, RNNsearch)
    assert model.output.weight is model.target_embedding.weight
    fresh = new_model(model.config, 4, 4, seed=1).eval()
    batch = pad_pairs([([2, 3], [3, 2])])
    torch.testing.assert_close(model(batch), fresh(batch))


def test_averaging_takes_the_mean_and_wants_equal_models(
    folder: Path, tmp_path: Path, error_line: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    vocabularies = ["--source-vocab", str(tmp_path / "s"), "--target-vocab", str(tmp_path / "t")]
    sizes = ["--set", "model.hidden=4", "--set", "model.embedding=3", "--set", "model.maxout=2"]
    other = str(tmp_path / "other")
    assert main(["init", other, "--preset", "rnnencdec-cho2014", "--seed", "2", *vocabularies, *sizes]) == 0
    saved = read_model(other)
    with torch.no_grad():
        next(saved.model.parameters()).mul_(2)
    saved.save(other)  # whose parameters have another name now
    assert read_settings(other).files.keys() == {"model.safetensors"}
    capfd.readouterr()
    assert main(["average", str(folder), other, "--output", str(tmp_path / "mean")]) == 0
    assert capfd.readouterr().err == f"{tmp_path / 'mean'}: mean of 2 models\n"
    models = [dict(load_model(path).model.named_parameters()) for path in (str(folder), other, str(tmp_path / "mean"))]
    assert not any(
        torch.equal(one, other)
        for one, other in zip(*(each.values() for each in models[:2]), strict=True)
        if one.dim() == 2
    )
    for name, tensor in models[2].items():
        torch.testing.assert_close(tensor, (models[0][name] + models[1][name]) / 2)
    larger = str(tmp_path / "larger")
    assert main(["init", larger, "--preset", "rnnsearch", *vocabularies, *sizes]) == 0
    line = error_line(main, ["average", str(folder), larger, "--output", str(tmp_path / "no")])
    problem = "differ in settings, vocabularies, target order, copying or preparation and cannot be averaged"
    assert line == f"nmt-core average: {larger} and {folder} {problem}"
    assert "holds a model already" in error_line(main, ["average", other, "--output", larger])


def test_only_models_whose_parameters_mean_the_same_are_alike(folder: Path) -> None:
    one = load_model(str(folder))
    words = Vocabulary([*one.target.words[:2], "two", "one"])
    assert _alike(one, dataclasses.replace(one, target=Vocabulary(one.target.words)))
    configs = ({"target_order": TargetOrder.RIGHT_TO_LEFT}, {"copying": CopyScheme.POSUNK}, {"model": PRESETS["rnnlm"]})
    others: list[dict[str, Any]] = [{"config": one.config.model_copy(update=change)} for change in configs]
    others += [{"source": words}, {"target": words}, {"factors": (words,)}]
    others += [{"preparation": SimpleNamespace(fingerprint="0")}]
    assert not any(_alike(one, dataclasses.replace(one, **other)) for other in others)


def test_a_signature_names_members_fields_and_arithmetic(folder: Path) -> None:
    loaded = load_model(str(folder))
    found, one = signature_of([loaded, loaded], "log:e", "norm:none"), loaded.fingerprint
    first = f"nmt:rnnencdec+rnnencdec|model:{one}+{one}|log:e|norm:none|dtype:float32|device:cpu|cpu:"
    assert found.startswith(first) and found.endswith(f"|torch:{torch.__version__}|version:{VERSION}")
    assert with_field(found, "x:1") == found.replace("|version:", "|x:1|version:")


def test_a_vocabulary_that_does_not_fit_is_refused(folder: Path) -> None:
    with (folder / "target.vocab").open("a") as stream:
        stream.write("three\t1\n")
    problem = (
        r"model.safetensors: target_embedding.weight is 4x3 but config.yaml and the vocabularies ask for 5x3; "
        r"were a vocabulary or the settings changed after training\?$"
    )
    with pytest.raises(ModelError, match=problem):
        load_model(str(folder))


def test_a_newer_format_is_refused(folder: Path) -> None:
    settings = folder / "config.yaml"
    settings.write_text(settings.read_text().replace("format_version: 7", "format_version: 8"))
    problem = "config.yaml: the model has format version 8 but this program knows 7; update hybridmt$"
    with pytest.raises(ModelError, match=problem):
        load_model(str(folder))


NONE = dict.fromkeys(("layer_dropout", "variational_dropout", "word_dropout"), 0.0)
FEW = {"residual": False, "gate_biases": False, "encoder_depth": 1, "decoder_depth": 1}
GONE: dict[str, Any] = {**NONE, **FEW, "source_factors_combine": "concat"}


def test_options_that_are_gone_are_read_where_they_said_nothing(folder: Path) -> None:
    path = folder / "config.yaml"
    settings = yaml.safe_load(path.read_text())
    fingerprint = load_model(str(folder)).fingerprint
    path.write_text(yaml.safe_dump({**settings, "model": {**settings["model"], **GONE}}))
    assert load_model(str(folder)).fingerprint == fingerprint
    for key, value in {**dict.fromkeys(GONE, 0.5), "depth": 1, "output_rank": "none"}.items():
        path.write_text(yaml.safe_dump({**settings, "model": {**settings["model"], key: value}}))
        with pytest.raises(ModelError, match=f"'model.{key}'"):
            load_model(str(folder))
    path.write_text(yaml.safe_dump({"format_version": 1, "model": {"type": "rnnlm", "depth": 1, "residual": False}}))
    assert read_settings(str(folder)).model.type == "rnnlm"
    parts = {"translation": {"hidden": 4, "residual": False}, "language": {"type": "rnnlm", "depth": 1}}
    assert _without_gone(parts) == {"translation": {"hidden": 4}, "language": {"type": "rnnlm"}}
    for name, problem in (("config.yaml", "Not a directory"), ("a\0b", "embedded null byte")):
        with pytest.raises(ModelError, match=f"{name}: {problem}$"):
            read_settings(str(folder / name))


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("config.yaml", "a model directory holds config.yaml, parameters and two vocabularies"),
        ("model.safetensors", "is this a model directory that was written completely?"),
        ("source.vocab", "copy the model directory again, the whole of it"),
    ],
)
def test_a_missing_file_is_named(folder: Path, missing: str, problem: str, error_line: Callable[..., str]) -> None:
    (folder / missing).unlink()
    line = error_line(main, ["score", "--model", str(folder), "-", "/dev/null"])
    assert f"{folder / missing}: " in line and line.endswith(f"; {problem}")


def test_an_existing_model_is_not_overwritten_by_init(folder: Path, error_line: Callable[..., str]) -> None:
    vocabulary = str(folder / "source.vocab")
    arguments = ["--preset", "rnnsearch", "--source-vocab", vocabulary, "--target-vocab", vocabulary]
    assert "holds a model already" in error_line(main, ["init", str(folder), *arguments])
    arguments += ["--set", "model.source_factors=[1, 1]", f"--factor-vocab={vocabulary}"]
    line = error_line(main, ["init", f"{folder}2", *arguments])
    problem = "--factor-vocab: 1 vocabulary for 2 factors of model.source_factors; give one for each"
    assert line == f"nmt-core init: {problem}"
