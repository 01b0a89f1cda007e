"""The site has every public name; it is built without a warning where its tools are installed."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.commands import ROOT

REFERENCE = (ROOT / "docs" / "site" / "reference.md").read_text()


def test_the_reference_has_every_public_name() -> None:
    described = re.findall(r"^\.\. auto\w+:: ([\w.]+)", REFERENCE, re.MULTILINE)
    for place in described:
        module, _, name = place.rpartition(".")
        assert hasattr(importlib.import_module(module), name), place
    for package in ("nmt_core", "smt_bridge"):
        names = {name.rpartition(".")[2] for name in described if name.startswith(package)}
        assert set(importlib.import_module(package).__all__) - names == {"__version__"}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package)
    script = ROOT / "scripts" / "release" / "site"
    done = subprocess.run([script, tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "load_model" in (tmp_path / "site" / "reference.html").read_text()
