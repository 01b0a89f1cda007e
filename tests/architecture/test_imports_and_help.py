"""What must stay true of the tree as a whole."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT)


@pytest.mark.parametrize(
    "module",
    [
        "nmt_core.base.interfaces",
        "nmt_core.serving.client.client",
        "nmt_core.commands.main",
        "smt_bridge.commands.main",
        "smt_bridge.tables.scoring",
        "smt_bridge.models",
        "smt_bridge.lists.add",
        "smt_bridge.tuning.tune",
    ],
)
def test_torch_stays_out_of(module: str) -> None:
    found = run("-c", f"import sys, {module}; print('torch' in sys.modules)")
    assert found.stdout.strip() == "False", found.stderr


@pytest.mark.parametrize("module", ["nmt_core.commands.train", "numpy", "pydantic", "yaml", "grpc"])
def test_help_of_the_bridge_does_not_load(module: str) -> None:
    found = run("-c", f"import sys, smt_bridge.commands.main; print('{module}' in sys.modules)")
    assert found.stdout.strip() == "False", found.stderr


@pytest.mark.parametrize("package", ["nmt_core", "smt_bridge"])
def test_help_shows_every_command_with_an_example(package: str) -> None:
    listing = run("-m", package, "--help")
    assert listing.returncode == 0
    commands = importlib.import_module(f"{package}.commands.main").COMMANDS
    program = package.replace("_", "-")
    for name in commands:
        found = run("-m", package, name, "--help")
        assert f"{program} {name}" in found.stdout.partition("example")[2]


_WRONG = """
import sys, {package}.commands.main as program
def ends(words):
    try:
        return program.main(words)
    except SystemExit as end:
        return end.code
for name in program.COMMANDS:
    found = ends([name, "--help"]), ends([name, "--no-such-option"])
    if found != (0, 2) or "torch" in sys.modules:
        sys.exit(f"{{name}}: codes {{found}}, torch {{'torch' in sys.modules}}")
"""


@pytest.mark.parametrize("package", ["nmt_core", "smt_bridge"])
def test_help_and_wrong_arguments_of_every_command_load_no_torch(package: str) -> None:
    found = run("-c", _WRONG.format(package=package))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("package", ["nmt_core", "smt_bridge"])
def test_every_command_names_its_work(package: str) -> None:
    for name, command in importlib.import_module(f"{package}.commands.main").COMMANDS.items():
        assert callable(pkgutil.resolve_name(importlib.import_module(command.module).RUN)), name


def test_messages_leave_by_one_way() -> None:
    """Only ``nmt_core.base.messages`` writes on standard error, so that control characters never reach a terminal."""
    files = [path for package in ("nmt_core", "smt_bridge") for path in (ROOT / package).rglob("*.py")]
    writers = [
        path.name for path in files if re.search(r"print\([^\n]*file=sys\.stderr|stderr\.write", path.read_text())
    ]
    assert writers == ["messages.py"]
