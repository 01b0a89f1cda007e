"""Dispatch to the commands of ``smt-bridge``; exit codes as in ``nmt_core.commands.main``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from nmt_core.commands.main import run_command
from smt_bridge.commands import (
    add_features,
    build_lm,
    doctor,
    merge,
    report,
    rerank,
    rescore_table,
    translate,
    tune,
    wire,
)

COMMANDS: tuple[ModuleType, ...] = (
    rescore_table,
    wire,
    merge,
    add_features,
    tune,
    rerank,
    translate,
    report,
    doctor,
    build_lm,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``smt-bridge`` with these arguments; the exit code."""
    return run_command("smt-bridge", "Neural scores in Moses pipelines.", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
