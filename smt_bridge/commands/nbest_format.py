"""The option that names the kind of an n-best list, for every command that reads one."""

from __future__ import annotations

import argparse


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--nbest-format``; its value is the ``dialect`` of ``read_entries`` and ``ordered_lists``."""
    parser.add_argument(
        "--nbest-format",
        default="auto",
        metavar="NAME",
        help="moses, factors:N, scored, fairseq, json, tabs or lines:N (auto: by the first lines, but for lines:N)",
    )
