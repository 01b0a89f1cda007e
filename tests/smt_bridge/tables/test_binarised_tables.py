"""Binarised tables are refused in one line that asks for their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from smt_bridge.commands.main import main


@pytest.mark.parametrize(
    ("files", "kind", "lacks"),
    [
        (
            "TargetColl.dat TargetVocab.dat Alignments.dat probing_hash.dat source_vocabids config",
            "ProbingPT",
            ", in which source phrases are hashes without their words",
        ),
        ("", "PhraseDictionaryCompact", ", in which source phrases are fingerprints without their words"),
        ("Misc.dat Vocab.dat Source.dat TargetColl.dat TargetInd.dat", "PhraseDictionaryOnDisk", ""),
    ],
)
def test_binarised_tables_are_refused(
    tmp_path: Path, files: str, kind: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.minphr"
    if files:
        table = tmp_path / "table.probing"
        table.mkdir()
    for path in [table / name for name in files.split()] or [table]:
        path.write_bytes(b"")
    assert main(["filter-table", str(table), "--by", "1", "--keep", "1", "--output", str(tmp_path / "small")]) == 2
    told = f"is a binarised table ({kind}){lacks}; give the text that it was made from"
    assert told in capsys.readouterr().err
    assert not (tmp_path / "small").exists()
