"""Every key of a training file has a row in docs/training.md; files that documents show can be trained with."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from nmt_core.models.build import AnyConfig
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.text.processing import TextConfig
from nmt_core.training.config import RunConfig, TrainingConfig
from nmt_core.training.data.config import DataConfig, TaskConfig
from nmt_core.training.run import with_recipe
from tests.docs.commands import PAGES, ROOT

MODELS = [config for config in get_args(AnyConfig) if config is not DeepFusionConfig]  # that is made by nmt-core fuse
ROWS = re.findall(r"^\| .*$", (ROOT / "docs" / "training.md").read_text(), re.MULTILINE)
FILES = [
    (page.name, yaml.safe_load(text))
    for page in PAGES
    for text in re.findall(r"^```yaml\n(folder:.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
]
SECTIONS = ("model", "text", "data", "training")


def keys(row: str) -> list[str]:
    """What stands in code in the first cell, such as ``data.source`` and ``target``."""
    return re.findall(r"`([\w.]+)`", row.split("|")[1])


def test_every_key_of_the_file_has_a_row() -> None:
    documented = {keys(row)[0] for row in ROWS if keys(row)}
    assert set(SECTIONS) < RunConfig.model_fields.keys()
    assert [name for name in RunConfig.model_fields if name not in (*SECTIONS, *documented)] == []


@pytest.mark.parametrize(
    ("section", "config"),
    [("data", DataConfig), ("training", TrainingConfig), *(("model", config) for config in MODELS)],
)
def test_every_key_of_a_section_has_a_row(section: str, config: type[BaseModel]) -> None:
    rows = [keys(row) for row in ROWS]
    documented = {
        name.rpartition(".")[2] for row in rows if any(k.startswith(f"{section}.") for k in row) for name in row
    }
    assert [name for name in config.model_fields if name not in documented] == []


@pytest.mark.parametrize(
    ("section", "config"),
    [("data", DataConfig), ("training", TrainingConfig), *(("model", config) for config in MODELS)],
)
def test_every_default_is_in_the_row_of_its_key(section: str, config: type[BaseModel]) -> None:
    missing = []
    for name, field in config.model_fields.items():
        if name == "type" or field.default in (None, (), ""):
            continue
        cells = [row.split("|", 2)[2] for row in ROWS if {name, f"{section}.{name}"} & set(keys(row))]
        if not any(re.search(rf"(?<![\w.])({written(field.default)})(?![\w])", cell) for cell in cells):
            missing.append((name, field.default))
    assert missing == []


def written(default: object) -> str:
    """A pattern of what the document may write for a default."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{re.escape(str(default))}|{default:g}"
    return re.escape(str(list(default) if isinstance(default, tuple) else default))


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("text.", TextConfig),
        ("tasks", TaskConfig),
    ],
)
def test_every_setting_is_named_in_the_row_of_its_section(key: str, config: type[BaseModel]) -> None:
    (row,) = (row for row in ROWS if row.startswith(f"| `{key}"))
    assert [name for name in config.model_fields if not re.search(rf"\b{name}\b", row)] == []


@pytest.mark.parametrize(("page", "settings"), FILES, ids=[f"{page}: {settings['folder']}" for page, settings in FILES])
def test_a_file_that_is_shown_can_be_trained_with(page: str, settings: dict[str, Any]) -> None:
    first = {"model": {"preset": "rnnsearch"}} if "start_from" in settings.get("training", {}) else {}
    assert RunConfig.from_mapping(with_recipe({**first, **settings}), origin=page).folder == settings["folder"]
