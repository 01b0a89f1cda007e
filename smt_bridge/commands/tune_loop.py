"""`smt-bridge tune-loop`: tuned weights of a Moses system, by decoding its development set round after round."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputDirectory, OutputFile
from smt_bridge.commands.options import add_moses_arguments, add_moses_options, add_tuner_arguments

RUN = "smt_bridge.tuning.loop:tune_loop"
_EXAMPLE = """examples:
  smt-bridge tune-loop moses.ini --source dev.tok.en --reference dev.tok.fr --working-dir tuning --output tuned.ini
  smt-bridge tune-loop nmt.ini --source dev.tok.en --reference dev.tok.fr --tuner mira --moses-threads 8 \\
      --working-dir tuning-nmt --output tuned.ini

In place of mert-moses.pl, with the tuners of `smt-bridge tune`. The program `moses` must be on the PATH (or --moses
PROGRAM); it runs in the current folder, where the paths of moses.ini must be right. The weights of the round whose own
translations score best are written into moses.ini, in which nothing else changes.

A loop that was interrupted, by whatever, goes on when it is started again; --working-dir has its lists and weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("ini", type=InputFile, metavar="MOSES.INI", help="the system, with start weights")
    add("--source", type=InputFile, required=True, metavar="FILE", help="the development set as the system reads it")
    add(
        "--reference",
        type=InputFile,
        action="append",
        required=True,
        metavar="FILE",
        help="its translation; repeatable",
    )
    add(
        "--working-dir",
        type=OutputDirectory,
        required=True,
        metavar="DIR",
        help="lists and weights of all rounds; a new folder",
    )
    add("--output", type=OutputFile, required=True, metavar="FILE", help="the moses.ini to write")
    add("--max-rounds", type=positive, default=25, metavar="N", help="most rounds (25)")
    add("--quiet", action="store_true", help="tell the result alone")
    moses = parser.add_argument_group("the decoder")
    add = moses.add_argument
    add_moses_arguments(moses)
    add_moses_options(moses)
    add("--nbest", type=int, default=100, metavar="N", help="hypotheses a sentence and round (100)")
    add_tuner_arguments(parser.add_argument_group("the tuner, as in `smt-bridge tune`"))
