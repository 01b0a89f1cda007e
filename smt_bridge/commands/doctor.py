"""`smt-bridge doctor`: what does not fit together, before anything crashes."""

from __future__ import annotations

import argparse

from smt_bridge.commands.options import add_format_argument

RUN = "smt_bridge.doctor.examination:diagnose"
_EXAMPLE = """examples:
  smt-bridge doctor moses.ini
  smt-bridge doctor nmt.ini --nbest test.rich.gz --weights weights --source test.tok.en --reference test.fr \\
      --scorer runs/search --lm lm.fr.arpa.gz

Each finding is a line on stdout: `error` or `warning`, the file (and line), the problem, the remedy; `note` says what
could not be looked into, such as a binarised table. Exit code 0 without errors, 1 with some, 2 when a file cannot be
read at all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("ini", nargs="?", default="", metavar="MOSES.INI", help="configuration; the files it names too")
    for option, help_text in (
        ("--table", "a phrase table"),
        ("--nbest", "an n-best list"),
        ("--weights", "weights for the list"),
        ("--source", "the tokenised source of the list"),
        ("--reference", "its reference"),
        ("--lm", "a KenLM language model"),
    ):
        parser.add_argument(option, default="", metavar="FILE", help=help_text)
    add_format_argument(parser)
    parser.add_argument("--scorer", default="", metavar="SPEC", help="DIR, DIR,DIR (an ensemble), ct2:DIR or hf:DIR")
    parser.add_argument("--json", action="store_true", help="findings as JSON, one a line")
