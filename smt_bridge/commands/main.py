"""Dispatch to the commands of ``smt-bridge``; exit codes as in ``nmt_core.commands.program``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from nmt_core.commands.program import Program, run_command
from smt_bridge.commands import (
    add_features,
    analyse,
    build_lm,
    doctor,
    filter_table,
    generate_phrases,
    graph,
    merge,
    report,
    rerank,
    rescore_table,
    serve,
    translate,
    tune,
    tune_loop,
    wire,
)

COMMANDS: tuple[ModuleType, ...] = (
    rescore_table,
    filter_table,
    generate_phrases,
    wire,
    graph,
    merge,
    add_features,
    tune,
    tune_loop,
    rerank,
    translate,
    serve,
    report,
    analyse,
    doctor,
    build_lm,
)


PROGRAM = Program(
    "smt-bridge",
    "Neural scores in Moses pipelines.",
    """\
where to begin:
  smt-bridge doctor moses.ini                                             what does not fit in a Moses system
  smt-bridge rescore-table phrase-table.gz --scorer runs/en-fr --output nmt-table.gz     then: smt-bridge wire
  smt-bridge add-features --source dev.tok.en --nbest dev.nbest.gz --scorer runs/en-fr --output dev.rich.gz
                                                                          then: smt-bridge tune, smt-bridge rerank
Every command has examples: 'smt-bridge COMMAND --help'. Models are trained with nmt-core: 'nmt-core --help'.
""",
    COMMANDS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``smt-bridge`` with these arguments; the exit code."""
    return run_command(PROGRAM, argv)


if __name__ == "__main__":
    sys.exit(main())
