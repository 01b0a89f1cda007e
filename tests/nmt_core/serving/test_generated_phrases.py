"""Phrases that a server proposes are those of its model in-process."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.experiments.cho2014.__main__ import main


@pytest.mark.parametrize("how", [["--beam", "9", "--nbest", "9"], ["--samples", "9", "--seed", "3"]])
def test_the_bytes_are_those_of_the_folder(server, folder: str, tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "text").write_text("un deux un\ndeux deux\n")
    for name, spec in (("local", folder), ("remote", f"grpc:{server.address}")):
        command = ["generate-phrases", "--scorer", spec, "--sources", str(tmp_path / "text"), "--jobs", "1", *how]
        assert main([*command, "--minimum-share", "0", "--output", str(tmp_path / name), "--quiet"]) == 0
    local, remote = (
        [line.split(" ||| ") for line in (tmp_path / name).read_text().splitlines()] for name in ("local", "remote")
    )
    assert [row[:2] for row in local] == [row[:2] for row in remote] != []
    assert [float(row[2].removesuffix(" |||")) for row in local] == pytest.approx(
        [float(row[2].removesuffix(" |||")) for row in remote], rel=1e-5
    )
