"""``nmt-core prune``: the smallest weights of a model become 0, and its folder smaller (See et al. 2016)."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputDirectory

RUN = "nmt_core.model_directory.commands.prune:prune_model"

_EPILOG = """\
examples:
  nmt-core prune --model runs/en-fr --fraction 0.4 --output runs/en-fr.40
  nmt-core prune --model runs/en-fr --fraction 0.8 --scheme class-blind --output runs/en-fr.80

Beyond 40 % of the weights, train the model on with its zeros kept:

  training: {start_from: runs/en-fr.80, keep_zeros: true, optimizer: sgd, learning_rate: 0.5, ...}

Zeros take no space in the folder; in memory they do, so a pruned model is smaller but not faster.
The classes of weights, with their numbers of weights and of zeros, go to standard output, separated by tabs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("--model", type=InputFile, required=True, metavar="DIR", help="the model folder")
    parser.add_argument("--fraction", required=True, type=_fraction, metavar="X", help="share of all weights, 0 to 1")
    parser.add_argument(
        "--scheme",
        choices=["class-blind", "class-uniform", "class-distribution"],
        default="class-blind",
        help="chosen among all, in every class, or in units of the class's standard deviation (default: class-blind)",
    )
    parser.add_argument("--output", type=OutputDirectory, required=True, metavar="DIR", help="the model folder to make")


def _fraction(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, such as 0.8")
    return number
