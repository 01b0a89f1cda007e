"""Source text becomes what a model reads in one place, so that a model may read more of it than ids."""

from __future__ import annotations

import re
from pathlib import Path

import nmt_core
import smt_bridge

_ENCODES_A_SOURCE = re.compile(r"\bsource(_vocabulary)?\.encode(_words)?\(")


def test_only_encode_text_asks_a_source_vocabulary_for_ids() -> None:
    packages = [Path(package.__path__[0]) for package in (nmt_core, smt_bridge)]
    files = [file for package in packages for file in package.rglob("*.py")]
    found = [file.name for file in files if _ENCODES_A_SOURCE.search(file.read_text(encoding="utf-8"))]
    assert found == ["loaded_model.py"]
