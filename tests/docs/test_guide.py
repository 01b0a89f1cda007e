"""The settings and rules of docs/guide-moses.md are ones that the programs take (commands: ``test_commands``)."""

from __future__ import annotations

import re

import pytest
import yaml

from nmt_core.training.config import RunConfig
from tests.docs.commands import ROOT, commands, parser

GUIDE = (ROOT / "docs" / "guide-moses.md").read_text()


@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec"])
def test_settings_can_be_trained_with(kind: str) -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    settings = yaml.safe_load(example)
    if kind == "rnnencdec":
        assert "`type: rnnencdec` and `phrase_table: phrase-table.gz`" in GUIDE
        settings["model"] = {"type": "rnnencdec"}
        data = {key: value for key, value in settings["data"].items() if key not in ("source", "target")}
        settings["data"] = {**data, "phrase_table": "phrase-table.gz"}
    assert RunConfig.from_mapping(settings, origin="guide").model.type == kind


def test_rules_of_snakemake_are_commands() -> None:
    shells = re.findall(r'shell: "([^"]*)"', GUIDE)
    assert len(shells) == 2
    for shell in shells:
        (command,) = commands(re.sub(r"\{\w*threads\}", "8", shell).replace("{", "").replace("}", ""))
        assert parser(command.program).parse_args(list(command.words)).run
