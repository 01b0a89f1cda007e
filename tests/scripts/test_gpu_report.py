"""``make test-gpu``, in small on a CPU, so that its first run on a GPU is not its first run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu.needs import Missing, say_what_is_missing
from benchmarks.gpu.report import Report, Row
from benchmarks.gpu.sections import SECTIONS, Section, _fill

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of a process with threads
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_every_section_runs_in_small_on_a_cpu(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--output", str(tmp_path), "--seconds", "270"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = json.loads((tmp_path / "report.json").read_text())
    wrong = [row for section in found["sections"] for row in section["rows"] if row.get("ok") is False]
    assert not wrong
    assert done.returncode == 0, done.stderr
    assert [section["name"] for section in found["sections"]] == [section.name for section in SECTIONS]
    assert all(section["rows"] and section["state"] == "complete" for section in found["sections"])
    assert "| rnnsearch | scoring | 1 | 1 |" in (tmp_path / "report.md").read_text()


def slow_rows(device: str) -> Iterator[Row]:
    """Two rows, of which the second never comes."""
    yield {"what": "a row", "ok": True}
    time.sleep(1000)


def failing_rows(device: str) -> Iterator[Row]:
    """A row and an error."""
    yield {"what": "a row", "value": 1234.5}
    raise RuntimeError("called | a synchronizing operation")


def test_a_section_that_is_cut_off_leaves_its_rows(tmp_path: Path) -> None:
    report = Report(tmp_path, "a report")
    _fill(Section("slow", slow_rows, 1, 1), "cpu", report, 3.0)
    (section,) = json.loads((tmp_path / "report.json").read_text())["sections"]
    assert section["rows"] == [{"what": "a row", "ok": True}]
    assert section["state"] == "cut off by its limit of 3 s"


def test_an_error_is_the_last_row_of_its_section(tmp_path: Path) -> None:
    report = Report(tmp_path, "a report")
    _fill(Section("failing", failing_rows, 1, 1), "cpu", report, 60.0)
    text = (tmp_path / "report.md").read_text()
    assert "| a row | 1,234 |  |" in text
    assert "| RuntimeError: called \\| a synchronizing operation |  | **NO** |" in text
    assert len(report.wrong) == 1


def test_what_is_missing_is_said_before_anything_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert not say_what_is_missing(Missing([], []))
    assert capsys.readouterr().err == ""
    assert not say_what_is_missing(Missing([], ["hypothesis"]))
    assert "test-gpu: no hypothesis here: the tests are left out" in capsys.readouterr().err
    assert say_what_is_missing(Missing(["pydantic", "yaml"], []))
    assert "test-gpu: no pydantic, yaml here (give SITE=DIR" in capsys.readouterr().err
