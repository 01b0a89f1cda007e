"""`smt-bridge doctor`: what does not fit together, before anything crashes."""

from __future__ import annotations

import argparse
import json

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say, show
from nmt_core.commands.parser import from_zero
from nmt_core.files.small import check_regular
from smt_bridge.commands.list_options import add_format_argument

NAME = "doctor"
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
    parser.add_argument("--scorer", default="", metavar="SPEC", help="a model folder, or several with commas")
    parser.add_argument(
        "--lines", type=from_zero, default=200_000, metavar="N", help="of each file, 0 for all (200000)"
    )
    parser.add_argument("--json", action="store_true", help="findings as JSON, one a line")


def run(args: argparse.Namespace) -> int:
    """Examine and print."""
    from smt_bridge.doctor.examination import Files, examine
    from smt_bridge.nbest.formats import check_format
    from smt_bridge.scorers import REMOTE

    if args.scorer.startswith(REMOTE):
        raise ConfigError(f"--scorer {args.scorer}: a server does not show its vocabularies; give the model's folder")
    given = (args.ini, args.table, args.nbest, args.weights, args.source, args.reference, args.scorer, args.lm)
    if not any(given):
        raise ConfigError("give a moses.ini or other files to look at")
    files = Files(*given, args.lines, check_format(args.nbest_format))
    for path in filter(None, (args.source, args.reference)):
        check_regular(path)  # read more than once
    errors = warnings = 0
    for finding in examine(files):
        print(json.dumps(finding._asdict()) if args.json else show(finding), flush=True)
        errors += finding.level == "error"
        warnings += finding.level == "warning"
    say(f"{NAME}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return 1 if errors else 0
