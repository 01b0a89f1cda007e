"""``nmt-core fuse``: a translation model and a recurrent language model as one model (deep fusion)."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputDirectory

RUN = "nmt_core.model_directory.commands.fuse:fuse_models"

_EPILOG = """\
example:
  nmt-core train lm.en.yaml
  nmt-core fuse --model runs/de-en --lm runs/lm.en --output runs/fused
  nmt-core train fused.yaml

The fused model translates exactly as runs/de-en until it is trained. fused.yaml:
  folder: runs/de-en.fused
  data: {source: train.tok.de, target: train.tok.en, dev_source: dev.tok.de, dev_target: dev.tok.en}
  training: {start_from: runs/fused, optimizer: adam, learning_rate: 0.0005, gradient: word, max_epochs: 3}
With --trained readout (Gülçehre et al. 2015) training changes readout, output layer and controller,
with --trained all (the Montréal WMT'15 system) everything.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--model", type=InputFile, required=True, metavar="DIR", help="translation model, of type rnnsearch"
    )
    parser.add_argument(
        "--lm", type=InputFile, required=True, metavar="DIR", help="language model of its target language"
    )
    parser.add_argument("--output", type=OutputDirectory, required=True, metavar="DIR", help="the model folder to make")
    parser.add_argument(
        "--trained", choices=["readout", "all"], default="readout", help="what training changes (default: readout)"
    )
