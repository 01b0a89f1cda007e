"""The commands of ``nmt-core``; exit codes as in ``nmt_core.commands.program``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from nmt_core.commands import (
    aer,
    annotate,
    average,
    client,
    decode,
    embed,
    fuse,
    import_model,
    init,
    lexicon,
    prepare,
    prune,
    score,
    serve,
    shuffle,
    train,
    train_lm,
    tune_lm,
    vocab,
)
from nmt_core.commands.program import Program, run_command

COMMANDS: tuple[ModuleType, ...] = (
    prepare,
    shuffle,
    vocab,
    lexicon,
    annotate,
    init,
    train,
    train_lm,
    average,
    prune,
    fuse,
    import_model,
    decode,
    tune_lm,
    score,
    aer,
    embed,
    serve,
    client,
)


PROGRAM = Program(
    "nmt-core",
    "Recurrent neural machine translation.",
    """\
where to begin:
  nmt-core prepare --help     raw corpora to training text
  nmt-core train --help       a small settings file, and training with it
  nmt-core decode --model runs/en-fr --raw < text.en > text.fr
  nmt-core score --model runs/en-fr test.tok.en test.tok.fr > logprobs
  nmt-core serve --model en-fr=runs/en-fr

Every command has examples: 'nmt-core COMMAND --help'. For phrase tables and n-best lists of Moses: 'smt-bridge --help'.
""",
    COMMANDS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``nmt-core`` with these arguments; the exit code."""
    return run_command(PROGRAM, argv)


if __name__ == "__main__":
    sys.exit(main())
