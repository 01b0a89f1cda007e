"""Options without which a command has nothing to do are asked for by the parser."""

from __future__ import annotations

import pytest

from smt_bridge.commands.main import main


def test_a_table_is_rescored_into_a_file_or_tried_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rescore-table", "table", "--scorer", "model"])
    assert ended.value.code == 2
    assert "one of the arguments --output --dry-run is required" in capsys.readouterr().err
