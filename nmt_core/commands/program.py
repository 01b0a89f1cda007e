"""A program with commands: its parser, dispatch to the commands, and the one place that turns errors into exit codes.

Exit codes: 0 done, 2 a user's mistake or a full disk (one line on stderr), 130 Ctrl-C, 141 quietly when the
reader of a pipe has gone, 143 quietly on SIGTERM where processes work. ``--debug`` shows the traceback of a user's
mistake.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from nmt_core.commands.buffered_output import buffer_output
from nmt_core.commands.closed_streams import occupy_closed_streams
from nmt_core.commands.completion import SHELLS, PrintCompletion
from nmt_core.commands.parser import Parser
from nmt_core.errors import NmtError
from nmt_core.extras import what_is_missing
from nmt_core.files import DISK_FULL, check_files
from nmt_core.messages import say
from nmt_core.version import VERSION


class Program(NamedTuple):
    """What ``--help`` says of a program, and its commands."""

    name: str
    description: str
    epilog: str
    commands: Sequence[ModuleType]


def run_command(program: Program, argv: Sequence[str] | None) -> int:
    """Parse, run one of the commands, and turn errors into exit codes. Without arguments: where to begin."""
    occupy_closed_streams()
    buffer_output()
    parser = parser_of(program)
    name, debug = program.name, False
    try:
        if not (sys.argv[1:] if argv is None else argv):
            parser.print_help(sys.stderr)
            return 2
        args = parser.parse_args(argv)
        name, debug = f"{name} {args.command}", args.debug
        _check_folder()
        check_files(args)
        code: int = args.run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 141
    except (NmtError, OSError) as error:
        if debug:
            raise
        say(f"{name}: {_problem(error)}")
        return 2
    except ModuleNotFoundError as error:
        if debug or not what_is_missing(error):
            raise
        say(f"{name}: {what_is_missing(error)}")
        return 2
    except KeyboardInterrupt:
        say(f"{name}: interrupted")
        return 130
    finally:
        _end_output()


def _check_folder() -> None:
    """Raise NmtError in a folder that was removed, where relative names mean nothing and libraries do not load."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise NmtError("the folder that this was started in is no longer there; change to another one") from error


def _problem(error: NmtError | OSError) -> str:
    """One line; unexpected errors of the operating system say what it knows of them."""
    if isinstance(error, NmtError):
        return str(error)
    place = f"{error.filename}: " if error.filename else "standard output: " if error.errno in DISK_FULL else ""
    return f"{place}{error.strerror or error}"


def _end_output() -> None:
    """Where standard output takes no more, what is left goes nowhere, without a traceback when Python ends."""
    if sys.stdout is None:  # closed before the program began
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser_of(program: Program) -> argparse.ArgumentParser:
    """The parser of a program's command lines."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=program.name, description=program.description, epilog=program.epilog, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"hybridmt {VERSION}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"print the script that completes command lines in {', '.join(SHELLS[:-1])} or {SHELLS[-1]}",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in program.commands:
        subparser = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=(command.__doc__ or "").replace("``", ""),
            formatter_class=layout,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser
