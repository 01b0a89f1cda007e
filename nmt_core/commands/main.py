"""The commands of ``nmt-core``; exit codes as in ``nmt_core.commands.program``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nmt_core.commands.program import Command, Program, run_command

COMMANDS = {
    "prepare": Command("nmt_core.commands.prepare", "clean, tokenise, filter and segment text; vocabularies"),
    "lexicon": Command("nmt_core.commands.lexicon", "make a lexicon for unknown words and candidate lists"),
    "annotate": Command(
        "nmt_core.commands.annotate", "make training text of which a model learns where unknown words come from"
    ),
    "init": Command("nmt_core.commands.init", "make an untrained model"),
    "train": Command("nmt_core.commands.train", "train a translation model or a language model"),
    "average": Command("nmt_core.commands.average", "average the parameters of models"),
    "prune": Command("nmt_core.commands.prune", "make the smallest weights of a model 0"),
    "fuse": Command("nmt_core.commands.fuse", "make one model of a translation model and a language model"),
    "import": Command("nmt_core.commands.import_model", "make a model folder of a checkpoint of another program"),
    "decode": Command("nmt_core.commands.decode", "translate lines with one model or an ensemble"),
    "tune-lm": Command("nmt_core.commands.tune_lm", "find the weight of an n-gram model in decode --lm"),
    "score": Command("nmt_core.commands.score", "score sentence or phrase pairs"),
    "aer": Command("nmt_core.commands.aer", "alignment error rate beside links that people made"),
    "embed": Command("nmt_core.commands.embed", "vectors of words, phrases and sentences"),
    "serve": Command("nmt_core.commands.serve", "serve models over gRPC"),
    "client": Command("nmt_core.commands.client", "translate or score with a server, or ask whether it is ready"),
}

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
