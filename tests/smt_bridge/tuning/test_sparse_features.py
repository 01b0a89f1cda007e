"""A system whose lists have sparse features is not tuned by the loop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from tests.smt_bridge.tuning.small_loop import arguments

PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests import fake_moses
plain = fake_moses.weighted
fake_moses.weighted = lambda *given: [line.replace("TM0=", "PB0_a= 1 TM0=") for line in plain(*given)]
sys.exit(fake_moses.main())
"""


def test_sparse_features_are_named_before_anything_is_tuned(
    weighted_moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(weighted_moses).write_text(PROGRAM)
    assert main(arguments(weighted_moses, "--quiet")) == 2
    assert "moses.ini: its lists have sparse features (PB0_a), which the loop does not tune" in capsys.readouterr().err
