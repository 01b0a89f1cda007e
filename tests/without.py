"""Runs one of our programs, or some Python, as if packages were not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASE = ("numpy", "pydantic", "yaml", "isal", "backports", "sacrebleu", "sacremoses", "tqdm")
NEURAL = ("torch", "safetensors")
_BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def run_without(
    packages: tuple[str, ...], script: str, *arguments: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``script``, which sees ``arguments`` in ``sys.argv[1:]`` and ``text`` on standard input."""
    command = [sys.executable, "-c", _BLOCK.format(packages=set(packages)) + script, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=120)


def program(package: str) -> str:
    """A script that is ``nmt-core`` or ``smt-bridge``."""
    return f"from {package}.commands.main import main\nsys.exit(main(sys.argv[1:]))"
