"""What the commands share that work through files in parts (``smt_bridge.jobs``)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from nmt_core.files import is_written_through
from nmt_core.messages import say


def add_part_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--shards", metavar="A-B", help="do only these parts of the work, counted from 1; needs files")
    parser.add_argument("--restart", action="store_true", help="throw away what an earlier command has done")


def may_be_done_in_parts(source: str, output: str) -> bool:
    """Whether ``source`` is a file, and ``output`` is one or will be."""
    return os.path.isfile(source) and output != "-" and not is_written_through(output)


def progress_bar(name: str, unit: str, *, quiet: bool) -> Any:
    """A bar on stderr; a log file needs no line every half second."""
    from tqdm import tqdm

    seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    seconds = 0.5 if seen and sys.stderr.isatty() else 30.0
    return tqdm(desc=name, unit=unit, unit_scale=True, file=sys.stderr, mininterval=seconds, disable=not seen)


def teller(bar: Any) -> Callable[[str, int], None]:
    """Passes what a job tells on to a progress bar: time left is counted from what is done now."""

    def tell(what: str, lines: int) -> None:
        if what == "total":
            bar.reset(total=lines)
        elif what == "resumed":
            bar.initial = lines
            bar.update(lines)
        else:
            bar.update(lines)

    return tell


def tell_nobody(what: str, lines: int) -> None:
    """For the processes of a job."""


def remark(name: str, text: str) -> None:
    """A line on stderr."""
    say(f"{name}: {text}")
