"""The recipes of the WMT'15 systems, as far as they go without a network and without training."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

WMT15 = Path(__file__).parents[2] / "scripts" / "experiments" / "wmt15"


def run(script: str, *arguments: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(WMT15 / script), *arguments]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("pair", [("en", "cs"), ("en", "de"), ("cs", "en"), ("de", "en"), ("fi", "en")])
def test_without_a_network_it_says_so_and_leaves_no_half_file(tmp_path: Path, pair: tuple[str, str]) -> None:
    curl = tmp_path / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text('#!/bin/sh\nfor file; do [ "$last" = --output ] && echo half > "$file"; last=$file; done\nexit 6\n')
    curl.chmod(0o755)
    done = run("run", *pair, str(tmp_path / "out"), path=f"{curl.parent}:{os.environ['PATH']}")
    assert done.returncode == 2
    assert "cannot be downloaded; is there a network?" in done.stderr
    assert [file.suffix for file in (tmp_path / "out" / "raw").iterdir()] == [".part"]
