"""Settings: unknown keys are refused with the nearest known one, and overrides are put in."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt_core.config import read_yaml, with_overrides
from nmt_core.errors import ConfigError, InputError
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
        ("model.zzz=3", r"unknown key 'model.zzz'; known keys: type, embedding, hidden"),
        ("model.hidden=0", r"'model.hidden': .* greater than 0 \(found 0\)"),
        ("model.type=transformer", r"'model': .*rnnsearch"),
        ("training.max_epochs=many", r"'training.max_epochs': .*found 'many'"),
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


def test_a_syntax_error_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("folder: x\nmodel: {a: [}\n")
    with pytest.raises(InputError, match=r"x.yaml:2: not valid YAML"):
        read_yaml(str(path))
