"""`smt-bridge new`: from a Moses system to a served hybrid, as a directory of settings and a Makefile."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive

RUN = "smt_bridge.new.run:new"
_EXAMPLE = """examples:
  smt-bridge new hybrid --moses-ini moses.ini --train train.tok.en train.tok.fr --dev dev.tok.en dev.tok.fr \\
      --nbest dev.nbest.gz --test test.tok.en test.tok.fr test.nbest.gz --minutes 60
  make -C hybrid
  make -C hybrid serve

Give texts as the Moses system reads them, tokenised and cased. `new` looks at the system, the corpus and
the machine, measures for half a minute how fast it trains, and says what will be done, how long it takes and what is
missing. DIR gets three settings files and a Makefile of the commands that a user would type: two RNNsearch models (of
both directions) and an RNNencdec of the phrases are trained, the phrase table gets a column, lists of both systems are
merged, scored, tuned and reranked. A make that was killed goes on where it was. Nothing that exists is overwritten.

With `moses` on the PATH both systems translate live, and `make serve` serves the hybrid; without, lists are needed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("folder", metavar="DIR", help="the directory to make")
    add("--moses-ini", required=True, metavar="FILE", help="the system, tuned")
    add("--train", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="the text that it was trained on")
    add("--dev", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="a development set")
    add("--nbest", default="", metavar="FILE", help="Moses' n-best list of the development set")
    add("--test", nargs="+", action="append", default=[], metavar="FILE", help="source, target and, without `moses`,"
        " the list of a test set; repeatable")  # fmt: skip
    add("--languages", nargs=2, metavar=("SOURCE", "TARGET"), help="such as en fr (the endings of --train)")
    add("--truecase-model", nargs=2, default=[], metavar=("SOURCE", "TARGET"), help="of a truecased system, by Moses'"
        " train-truecaser.perl: models and hybrid take running text")  # fmt: skip
    add("--minutes", type=positive, default=60, metavar="N", help="how long all may take (60)")
    add("--size", choices=["small", "medium", "paper"], help="of the models (small for little text or time, or medium)")
    add("--updates", type=positive, metavar="N", help="of each training, in place of --minutes and the measurement")
    add("--workflow", choices=["make", "snakemake", "ems"], default="make", help="what DIR has: a Makefile (make), a"
        " Snakefile, or also a module for experiment.meta of Moses")  # fmt: skip
