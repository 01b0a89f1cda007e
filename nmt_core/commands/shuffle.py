"""``nmt-core shuffle``: parallel files in a random order, larger than memory if need be."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.preparation.commands.shuffle:shuffle_files"

_EPILOG = """\
examples:
  nmt-core shuffle --seed 1 train.en train.de --output shuffled.en shuffled.de
  nmt-core shuffle --seed 2 --memory 4096 train.en.gz train.de.gz --output again.en.gz again.de.gz

Lines that belong together stay together. The order depends on the seed and the number of lines, not on
--memory; temporary files of the size of the (uncompressed) inputs lie beside the first output.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "inputs",
        type=InputFile,
        nargs="+",
        metavar="FILE",
        help="files that match line by line, plain, gzip, xz or zstd",
    )
    parser.add_argument(
        "--output", type=OutputFile, nargs="+", required=True, metavar="F", help="a file for each input"
    )
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="another number, another order")
    parser.add_argument("--memory", type=int, default=256, metavar="MIB", help="MiB to sort in (default: 256)")
