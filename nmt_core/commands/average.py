"""``nmt-core average``: the mean of the parameters of several models of one training run."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputDirectory

RUN = "nmt_core.model_directory.average:average_models"

_EPILOG = """\
examples:
  nmt-core average runs/a runs/b --output runs/mean
  nmt-core average runs/a/snapshots/* --output runs/mean

The models must have the same settings and vocabularies; parameters of different training runs
do not average well (use them as an ensemble instead).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("models", type=InputFile, nargs="+", metavar="DIR", help="model folders")
    parser.add_argument("--output", type=OutputDirectory, required=True, metavar="DIR", help="the model folder to make")
