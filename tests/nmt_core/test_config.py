"""Settings: unknown keys are refused with the nearest known one, and overrides are put in."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.config import merge, read_yaml, with_overrides
from nmt_core.training.config import RunConfig

GOOD = {
    "folder": "runs/x",
    "model": {"type": "rnnsearch", "hidden": 8},
    "data": {"source": "a", "target": "b", "dev_source": "c", "dev_target": "d"},
}


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("model.hiden=3", r"unknown key 'model.hiden'; did you mean 'hidden'\?"),
        ("training.optimiser=adam", r"unknown key 'training.optimiser'; did you mean 'optimizer'\?"),
        ("trainig.seed=3", r"unknown key 'trainig'; did you mean 'training'\?"),
        ("model.zzz=3", r"unknown key 'model.zzz'; known keys: type, .*hidden"),
        ("model.hidden=0", r"'model.hidden': .* greater than 0 \(found 0\)"),
        ("model.type=transformer", r"'model': .*rnnsearch"),
        ("training.max_epochs=many", r"'training.max_epochs': .*found 'many'"),
        ("training.max_epochs=true", r"'training.max_epochs': .*integer \(found True\)"),
        ("training.max_minutes=false", r"'training.max_minutes': .*number \(found False\)"),
        ("model.hidden=true", r"'model.hidden': .*integer \(found True\)"),
        ("model.hidden=8.0", r"'model.hidden': .*integer \(found 8.0\)"),
        ("data.weights=[true, 2.0]", r"'data.weights.0': .*number \(found True\)"),
        ("data.weights=[1.0, '2']", r"'data.weights.1': .*number \(found '2'\); leave out the quotes"),
        ("training.max_epochs='3'", r"'training.max_epochs': .*integer \(found '3'\); leave out the quotes"),
        ("model.tied=yes", r"'model.tied': .*boolean \(found 'yes'\); write true or false"),
        ("training.self_normalization=.inf", r"'training.self_normalization': .*finite number \(found inf\)"),
        ("training.decay_after=.inf", r"'training.decay_after': .*finite number \(found inf\)"),
        ("data.source_vocabulary=-5", r"'data.source_vocabulary': expected a file, or a size of at least 1 word"),
        ("training.microbatches=1000000000000", r"'training.microbatches': .*less than or equal to 4096"),
        ("data.phrase_table=t", r"'data': .*either source and target, or phrase_table"),
        ("model", r"expected KEY=VALUE"),
        ("folder.x=1", r"'folder' is not a group of settings"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(assignment: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        RunConfig.from_mapping(with_overrides(GOOD, [assignment]), origin="run.yaml")
    assert "\n" not in str(caught.value)


def test_overrides_are_yaml_and_leave_the_original_alone() -> None:
    found = with_overrides(GOOD, ["model.hidden=16", "training.select_by=nll", "training.max_epochs=null"])
    config = RunConfig.from_mapping(found, origin="x")
    assert (config.model.hidden, config.training.select_by, config.training.max_epochs) == (16, "nll", None)
    assert GOOD["model"] == {"type": "rnnsearch", "hidden": 8}


def test_a_config_comes_back_from_its_mapping() -> None:
    config = RunConfig.from_mapping(GOOD, origin="x")
    assert RunConfig.from_mapping(config.to_mapping(), origin="x") == config


@pytest.mark.parametrize("name", ["no", "on", "y", "off", "012", "2024-01-01", "1:30", "1_000", "0x10"])
def test_a_name_is_a_string_however_it_looks(name: str, tmp_path: Path) -> None:
    """YAML 1.1 reads Norwegian as false, octal numbers, dates and times."""
    assert with_overrides({}, [f"folder={name}"]) == {"folder": name}
    path = tmp_path / "x.yaml"
    path.write_text(f"folder: {name}\nlist: [a, {name}]\n")
    assert read_yaml(str(path)) == {"folder": name, "list": ["a", name]}
    config = RunConfig.from_mapping(with_overrides(GOOD, [f"folder={name}", "model.tied=true"]), origin="x")
    assert (config.folder, config.model.tied) == (name, True)


def test_numbers_and_truth_values_are_what_they_were() -> None:
    written = {"a": "12", "b": "-3", "c": "15e-4", "d": ".inf", "e": "true", "f": "null", "g": "~", "h": "[1, 2.5]"}
    found = with_overrides({}, [f"{key}={value}" for key, value in written.items()])
    assert list(found.values()) == [12, -3, 0.0015, float("inf"), True, None, None, [1, 2.5]]


def test_a_number_where_a_name_is_wanted_is_to_be_quoted() -> None:
    with pytest.raises(ConfigError, match=r"'folder': .*string \(found 2024\); put it in quotes"):
        RunConfig.from_mapping(with_overrides(GOOD, ["folder=2024"]), origin="x")
    assert RunConfig.from_mapping(with_overrides(GOOD, ["folder='2024'"]), origin="x").folder == "2024"


@pytest.mark.parametrize("assignment", ["data.source=text\udcff", "training.\udcff=1"])
def test_an_override_that_is_not_utf8_is_refused(assignment: str) -> None:
    """No settings can hold the name."""
    with pytest.raises(ConfigError, match="is not UTF-8, which settings have to be; rename the file"):
        with_overrides(GOOD, [assignment])


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("model: {a: [}", ""),
        ("!!seq a: 1", ": a key that is no single word"),
        ("model: {1: a, '1': b}", ": the key '1' is given twice"),
        (r'model: "a\0b"', r": the character U\+0000 may not stand in it"),
        (r'model: "\ud800"', r": the character U\+D800 may not stand in it"),
    ],
)
def test_a_mistake_names_its_line(second: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"folder: x\n{second}\n")
    with pytest.raises(InputError, match=f"x.yaml:2: not valid YAML{problem}"):
        read_yaml(str(path))


def test_a_pipe_of_settings_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "run.yaml"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(pipe.write_text, "folder: 1\n")
        settings = read_yaml(str(pipe))
        written.result()
    with pytest.raises(ConfigError, match=r"run\.yaml: 'folder'"):
        RunConfig.from_mapping(settings, origin=str(pipe))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("data: {source: a, target: b, weights: [1.0,\n  true]}", r":4: 'data.weights.1': .*found True"),
        ("training:\n  seed: 1\n  max_epochs: '3'", r":5: 'training.max_epochs': .*found '3'"),
        ("training:\n  optimiser: adam", r":4: unknown key 'training.optimiser'"),
        ("training:\n  learning_rate: .nan", r":4: 'training.learning_rate': .*found nan"),
    ],
)
def test_a_wrong_value_names_its_line_unless_it_is_of_an_option(wrong: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    data = "" if wrong.startswith("data") else "data: {source: a, target: b, dev_source: c, dev_target: d}\n"
    path.write_text(f"folder: x\nmodel: {{type: rnnsearch}}\n{wrong}\n{data}")
    with pytest.raises(ConfigError, match=rf"run\.yaml{problem}"):
        RunConfig.from_mapping(read_yaml(str(path)), origin=str(path))
    with pytest.raises(ConfigError, match=r"run\.yaml: 'model.hidden'"):
        RunConfig.from_mapping(with_overrides(read_yaml(str(path)), ["model.hidden=no"]), origin=str(path))


def test_layers_are_merged_key_by_key() -> None:
    first, second = {"a": {"b": 1, "c": [1, 2]}, "d": 3}, {"a": {"c": [4]}, "d": {"e": 5}}
    assert merge(first, second, {"f": 6}) == {"a": {"b": 1, "c": [4]}, "d": {"e": 5}, "f": 6}
    assert first == {"a": {"b": 1, "c": [1, 2]}, "d": 3}
