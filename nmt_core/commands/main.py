"""Dispatch to the commands, and the one place that turns errors into exit codes.

Exit codes: 0 done, 2 a user's mistake (one line on stderr), 130 Ctrl-C; a reader that closes the
pipe early ends the command quietly. ``--debug`` shows the traceback of a user's mistake.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType

from nmt_core.commands import (
    average,
    client,
    decode,
    fuse,
    init,
    lexicon,
    prepare,
    score,
    serve,
    shuffle,
    train,
    train_lm,
    tune_lm,
    vocab,
)
from nmt_core.errors import NmtError

COMMANDS: tuple[ModuleType, ...] = (
    prepare,
    shuffle,
    vocab,
    lexicon,
    init,
    train,
    train_lm,
    average,
    fuse,
    decode,
    tune_lm,
    score,
    serve,
    client,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``nmt-core`` with these arguments; the exit code."""
    return run_command("nmt-core", "Recurrent neural machine translation.", COMMANDS, argv)


def run_command(program: str, description: str, commands: Sequence[ModuleType], argv: Sequence[str] | None) -> int:
    """Parse, run one of ``commands``, and turn errors into exit codes."""
    parser = _parser(program, description, commands)
    args = parser.parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except NmtError as error:
        if args.debug:
            raise
        print(f"{program} {args.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(f"{program} {args.command}: interrupted", file=sys.stderr)
        return 130


def _parser(program: str, description: str, commands: Sequence[ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--version", action="version", version=f"hybridmt {metadata.version('hybridmt')}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in commands:
        subparser = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
