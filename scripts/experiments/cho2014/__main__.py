"""The experiments of Cho et al. 2014 with phrase tables: `python -m scripts.experiments.cho2014 COMMAND`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nmt_core.commands.program import Command, Program, run_command

_HERE = "scripts.experiments.cho2014"
COMMANDS = {
    "analyse": Command(f"{_HERE}.analyse", "show what a model knows of a phrase table"),
}
PROGRAM = Program("cho2014", "The experiments of Cho et al. 2014 with phrase tables.", "", COMMANDS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command with these arguments; the exit code."""
    return run_command(PROGRAM, argv)


if __name__ == "__main__":
    sys.exit(main())
