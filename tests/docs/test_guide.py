"""The settings of docs/guide-moses.md are ones that can be trained with (commands: ``test_commands``)."""

from __future__ import annotations

import re

import pytest
import yaml

from nmt_core.training.config import RunConfig
from nmt_core.training.run import with_recipe
from tests.docs.commands import ROOT

GUIDE = (ROOT / "docs" / "guide-moses.md").read_text()


SETTINGS = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: str(settings["folder"]))
def test_settings_can_be_trained_with(settings: dict[str, object]) -> None:
    RunConfig.from_mapping(with_recipe(settings), origin="guide")
    name = str(settings["folder"]).removeprefix("runs/")
    assert f"`{name}.yaml`" in GUIDE
    assert f"nmt-core train {name}.yaml" in GUIDE


def test_every_model_that_the_guide_uses_is_trained_in_it() -> None:
    used = set(re.findall(r"(?:scorer|--model|nmtreverse:)[ ]?(runs/\w+)", GUIDE))
    assert used == {settings["folder"] for settings in SETTINGS}
