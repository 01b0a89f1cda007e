"""Every key of a training file has a row in docs/training.md."""

from __future__ import annotations

import re

import pytest

from nmt_core.text.processing import TextConfig
from nmt_core.training.config import DataConfig, TrainingConfig
from tests.docs.commands import ROOT

ROWS = re.findall(r"^\| ([^|]*) \|", (ROOT / "docs" / "training.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("section", "config"), [("data", DataConfig), ("training", TrainingConfig)])
def test_every_key_has_a_row(section: str, config: type[DataConfig | TrainingConfig]) -> None:
    documented = {name for row in ROWS if f"`{section}." in row for name in re.findall(r"`(?:\w+\.)?(\w+)`", row)}
    assert [name for name in config.model_fields if name not in documented] == []


def test_every_setting_of_text_is_named() -> None:
    (row,) = re.findall(r"^\| `text\..*$", (ROOT / "docs" / "training.md").read_text(), re.MULTILINE)
    assert [name for name in TextConfig.model_fields if f"{name}`" not in row] == []
