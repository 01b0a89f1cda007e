"""Settings: unknown keys are refused with the nearest known one, and overrides are put in."""

from __future__ import annotations

import os
import re
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


WRONG = """\
model.hiden=3 ||| unknown key 'model.hiden'; did you mean 'hidden'?
training.optimiser=adam ||| unknown key 'training.optimiser'; did you mean 'optimizer'?
trainig.seed=3 ||| unknown key 'trainig'; did you mean 'training'?
zzz=3 ||| unknown key 'zzz'; known keys: folder, model, text, target_order, copying, data, tasks, training
model.zzz=3 ||| unknown key 'model.zzz'; known keys: type, cell, embedding, hidden, output_rank, ...
model.hidden=0 ||| 'model.hidden': Input should be greater than 0 (found 0)
model.type=transformer ||| 'model': Input tag 'transformer' found using 'type' does not match any of the ex...
training.max_epochs=many ||| 'training.max_epochs': Input should be a valid integer (found 'many')
training.max_epochs=true ||| 'training.max_epochs': Input should be a valid integer (found True)
training.max_minutes=false ||| 'training.max_minutes': Input should be a valid number (found False)
model.hidden=true ||| 'model.hidden': Input should be a valid integer (found True)
model.hidden=8.0 ||| 'model.hidden': Input should be a valid integer (found 8.0)
data.weights=[true, 2.0] ||| 'data.weights.0': Input should be a valid number (found True)
data.weights=[1.0, '2'] ||| 'data.weights.1': Input should be a valid number (found '2'); leave out the quotes
training.max_epochs='3' ||| 'training.max_epochs': Input should be a valid integer (found '3'); leave out the quotes
model.tied=yes ||| 'model.tied': Input should be a valid boolean (found 'yes'); write true or false
model.tied=[no] ||| 'model.tied': Input should be a valid boolean (found ['no'])
folder=1 ||| 'folder': Input should be a valid string (found 1); put it in quotes
training.self_normalization=.inf ||| 'training.self_normalization': Input should be a finite number (found inf)
training.decay_after=.inf ||| 'training.decay_after': Input should be a finite number (found inf)
data.source_vocabulary=-5 ||| 'data.source_vocabulary': expected a file, or a size of at least 1 word (found -5)
training.microbatches=5000 ||| 'training.microbatches': Input should be less than or equal to 4096 (found 5000)
data.phrase_table=t ||| 'data': give either source and target, or phrase_table, or for a language model text
model ||| --set model: expected KEY=VALUE, such as model.hidden=512
=3 ||| --set =3: expected KEY=VALUE, such as model.hidden=512
folder.x=1 ||| --set folder.x=1: 'folder' is not a group of settings
a=[ ||| --set a=[: the value is not valid YAML (expected the node content, but found '<stream end>')
b=\udcff ||| --set b=\udcff: is not UTF-8, which settings have to be; rename the file
\udcff=1 ||| --set \udcff=1: is not UTF-8, which settings have to be; rename the file
"""  # no settings can hold the name of a file that is not UTF-8


@pytest.mark.parametrize("row", WRONG.splitlines(), ids=ascii)
def test_a_wrong_setting_is_one_clear_line(row: str) -> None:
    assignment, _, problem = row.partition(" ||| ")
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_mapping(with_overrides(GOOD, [assignment]), origin="run.yaml")
    expected, found = problem if "--set" in problem else f"run.yaml: {problem}", str(caught.value)
    assert found.startswith(expected[:-3]) if expected.endswith("...") else found == expected
    assert "\n" not in found


def test_a_key_that_is_missing_is_named_and_a_long_value_is_cut() -> None:
    for key, value, problem in (("folder", "", "is missing"), ("data", "x" * 99, f"(found '{'x' * 79})")):
        changed = {name: one for name, one in GOOD.items() if name != key} | ({key: value} if value else {})
        with pytest.raises(ConfigError, match=rf"^run\.yaml: '{key}'.*{re.escape(problem)}$"):
            RunConfig.from_mapping(changed, origin="run.yaml")


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
    written |= {"i": "+1", "j": ".5", "k": "5.", "l": "-.INF", "m": "FALSE", "n": "", "o": "9" * 19, "p": "1" * 20}
    found = with_overrides({}, [f" {key} ={value}" for key, value in written.items()])
    assert list(found) == list(written)
    assert list(found.values())[:8] == [12, -3, 0.0015, float("inf"), True, None, None, [1, 2.5]]
    assert list(found.values())[8:] == [1, 0.5, 5.0, -float("inf"), False, None, 10**19 - 1, "1" * 20]
    assert [type(value) for value in list(found.values())[:3]] == [int, int, float]


def test_a_number_where_a_name_is_wanted_is_to_be_quoted() -> None:
    assert RunConfig.from_mapping(with_overrides(GOOD, ["folder='2024'"]), origin="x").folder == "2024"


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("model: {a: [}", ""),
        ("!!seq a: 1", ": a key that is no single word"),
        ("model: {1: a, '1': b}", ": the key '1' is given twice"),
        (r'model: "a\0b"', r": the character U\+0000 may not stand in it"),
        (r'model: "\ud800"', r": the character U\+D800 may not stand in it"),
        ("\x01: 2", r": the character U\+0001 may not stand in it"),
        ("model: !!binary b", ": could not determine a constructor for the tag 'tag:yaml.org,2002:binary'"),
        ("model: *b", r": the alias \*b: write the value out instead"),
        (f"model: {{{'k' * 99}: 1, {'k' * 99}: 2}}", f": the key '{'k' * 80}' is given twice"),
        ("model: \udcff", r": not UTF-8 \(invalid start byte\)"),
    ],
)
def test_a_mistake_names_its_line(second: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(os.fsencode(f"folder: x\n{second}\n"))
    with pytest.raises(InputError, match=f"x.yaml:2: not valid YAML{problem}{'$' if problem else ''}"):
        read_yaml(str(path))


def test_what_is_no_file_of_settings_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for content, problem in (
        ("a: " + "[" * 3000, "not valid YAML: nested too deeply"),
        ("a: !!int x", "not valid YAML: not a value (invalid literal for int() with base 10: 'x')"),
        ("- a", "expected 'key: value' lines"),
        ("#" * 262_145, "has more than 262,144 bytes, which no file of this kind has; is it the right one?"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {problem}')}$"):
            read_yaml(str(path))
    path.write_text("a: 1\n" + "#" * 262_139)
    assert read_yaml(str(path)) == {"a": 1}


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
