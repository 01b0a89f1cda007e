"""Of several lines of weights for one feature Moses takes the last."""

from __future__ import annotations

from pathlib import Path

from smt_bridge.moses.ini import read_ini, with_weights

INI = """[feature]
PhraseDictionaryMemory name=TM0 num-features=2 path=table

[weight]
TM0= 9 9
TM0= 0.1 0.2
"""


def test_new_weights_go_into_the_line_that_counts(tmp_path: Path) -> None:
    (tmp_path / "moses.ini").write_text(INI)
    written = with_weights(read_ini(str(tmp_path / "moses.ini")), {"TM0": [0.3, 0.4]}).content
    assert written.decode() == INI.replace("0.1 0.2", "0.3 0.4")
