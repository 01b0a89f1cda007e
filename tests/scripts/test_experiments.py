"""Each experiment has a page with its question and where its answer is, and its programs run with the current code."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "scripts" / "experiments"
PACKAGES = [path.parent for path in sorted(EXPERIMENTS.glob("*/__main__.py"))]  # run as `python -m`
FILES = [
    path
    for path in sorted(EXPERIMENTS.glob("*/*"))
    if path.is_file() and path.name != "README.md" and path.parent not in PACKAGES
]
SHELL = [path for path in FILES if path.suffix != ".py" and "python" not in path.read_text().partition("\n")[0]]
PYTHON = [path for path in FILES if path not in SHELL]


@pytest.mark.parametrize(
    "folder", [path for path in EXPERIMENTS.iterdir() if path.is_dir()], ids=lambda path: path.name
)
def test_an_experiment_says_its_question_its_programs_and_its_answer(folder: Path) -> None:
    page = (folder / "README.md").read_text()
    assert "Question" in page and ("Answer" in page or "Result" in page)
    for program in (path for path in FILES if path.parent == folder):
        assert f"`{program.name}" in page


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_shell_scripts_parse(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.mark.parametrize("script", PYTHON, ids=lambda path: path.name)
def test_python_programs_import_what_there_is(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])  # as where the program is started
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert not ended.value.code


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_packages_of_programs_import_what_there_is(package: Path) -> None:
    command = [sys.executable, "-m", f"scripts.experiments.{package.name}", "--help"]
    subprocess.run(command, check=True, capture_output=True, cwd=EXPERIMENTS.parents[1])
