"""Dispatch to the commands of ``smt-bridge``; exit codes as in ``nmt_core.commands.program``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nmt_core.commands.program import Command, Program, run_command

COMMANDS = {
    "new": Command("smt_bridge.commands.new", "from a Moses system to a served hybrid: make the steps and run them"),
    "rescore-table": Command("smt_bridge.commands.rescore_table", "add neural scores to a Moses phrase or rule table"),
    "filter-table": Command("smt_bridge.commands.filter_table", "keep of a table what a text needs"),
    "wire": Command("smt_bridge.commands.wire", "make the moses.ini that uses a rescored phrase table"),
    "graph": Command(
        "smt_bridge.commands.graph",
        "n-best lists of any length and neural search in Moses' search graphs",
    ),
    "add-features": Command(
        "smt_bridge.commands.add_features",
        "n-best lists of several systems as one, with neural and language model scores",
    ),
    "tune": Command(
        "smt_bridge.commands.tune", "find the weights of an n-best list's features that make BLEU, chrF or TER best"
    ),
    "tune-loop": Command(
        "smt_bridge.commands.tune_loop",
        "tune a Moses system: decode its development set, tune, decode again, until the weights settle",
    ),
    "rerank": Command(
        "smt_bridge.commands.rerank", "choose the best hypothesis of every n-best list by weighted features"
    ),
    "translate": Command(
        "smt_bridge.commands.translate",
        "translate with Moses and a neural model at once: lists of both, merged and reranked",
    ),
    "report": Command("smt_bridge.commands.report", "write an HTML page that shows what reranking or rescoring did"),
    "doctor": Command(
        "smt_bridge.commands.doctor",
        "look at moses.ini, tables, lists, weights, models together and name every mismatch",
    ),
    "build-lm": Command("smt_bridge.commands.build_lm", "build an n-gram language model"),
}

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
