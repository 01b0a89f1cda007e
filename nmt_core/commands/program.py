"""A program with commands: its parser, dispatch to the commands, and the one place that turns errors into exit codes.

Exit codes: 0 done, 2 a user's mistake or a full disk (one line on stderr), 130 Ctrl-C, 141 quietly when the
reader of a pipe has gone, 143 on SIGTERM and 129 on SIGHUP, both quietly. ``--debug`` shows the traceback of a user's
mistake.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt_core.base.errors import FULL_GPU, NmtError, is_full_gpu, what_is_missing
from nmt_core.base.messages import say
from nmt_core.commands.parser import Parser
from nmt_core.files import DISK_FULL, check_files
from nmt_core.version import VERSION


class Command(NamedTuple):
    """A command's module, and what the command does in one line.

    The module declares the arguments, imports nothing heavy, and names the work: ``RUN = "package.module:function"``.
    """

    module: str
    help: str


class Program(NamedTuple):
    """What ``--help`` says of a program, and its commands by name."""

    name: str
    description: str
    epilog: str
    commands: Mapping[str, Command]


def run_command(program: Program, argv: Sequence[str] | None) -> int:
    """Parse, run one of the commands, and turn errors into exit codes. Without arguments: where to begin."""
    words = sys.argv[1:] if argv is None else list(argv)
    name, debug = program.name, False
    try:
        parser = parser_of(program, words)
        if not words:
            parser.print_help(sys.stderr)
            return 2
        args = parser.parse_args(words)
        name, debug = f"{name} {args.command}", args.debug
        check_files(args)
        module = importlib.import_module(program.commands[args.command].module)
        work = pkgutil.resolve_name(module.RUN)  # libraries that are being loaded drop exceptions of signals
        with _orderly_end():
            code: int = work(args)
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
    except RuntimeError as error:
        if debug or not is_full_gpu(error):
            raise
        say(f"{name}: {FULL_GPU}")
        return 2
    except KeyboardInterrupt:
        say(f"{name}: interrupted")
        return 130
    finally:
        _end_output()


@contextlib.contextmanager
def _orderly_end() -> Iterator[None]:
    """On SIGTERM and SIGHUP, what the block has opened is closed first; exit code 128 + N.

    Of a program that dies by the signal, processes, semaphores and half-written files stay behind.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


def parser_of(program: Program, words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of a program's command lines; of one whose ``words`` are given, with that command's arguments alone.

    Only the modules of the commands that have their arguments are loaded.
    """
    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=program.name, description=program.description, epilog=program.epilog, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"hybridmt {VERSION}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = [*program.commands] if words is None else [word for word in words if word in program.commands]
    chosen = known if words is None else known[:1]
    for name, command in program.commands.items():
        subparser = subparsers.add_parser(name, help=command.help, formatter_class=layout)
        if name in chosen:
            module = importlib.import_module(command.module)
            subparser.description = (module.__doc__ or "").replace("``", "")
            module.add_arguments(subparser)
    return parser
