"""``nmt-core train``: train a model as a YAML file says."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_device
from nmt_core.commands.parser import positive

RUN = "nmt_core.training.run:train"

_EPILOG = """\
examples:
  nmt-core train en-fr.yaml
  nmt-core train en-fr.yaml --set training.max_epochs=5 --set folder=runs/short
  nmt-core train en-fr.yaml --resume      (goes on after Ctrl-C, SIGTERM or kill -9)
  nmt-core train en-fr.yaml --set training.microbatches=4 --processes 2

A small file:
  folder: runs/en-fr
  model: {type: rnnsearch, hidden: 256, embedding: 128, alignment: 128, maxout: 128, dropout: 0.3}
  text: {source_language: en, target_language: fr}
  data: {source: train.tok.en, target: train.tok.fr, dev_source: dev.tok.en, dev_target: dev.tok.fr}
  training: {optimizer: adam, learning_rate: 0.001, gradient: word, max_epochs: 20, validate_every: 500}
A language model, for decode and fuse (its vocabulary is that of the translation model's target):
  folder: runs/lm.fr
  model: {hidden: 256, embedding: 128, dropout: 0.3}
  data: {text: mono.tok.fr.gz, dev_text: dev.tok.fr, target_vocabulary: runs/en-fr/target.vocab}
  training: {optimizer: adam, learning_rate: 0.001, gradient: word, max_epochs: 10, validate_every: 500}
With 'data.text' the model is recurrent, or 'model: {type: cslm, ...}' an n-gram model, and 'select_by' is nll.

'model: {preset: rnnsearch}' takes the sizes of the paper. docs/training.md explains every key.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("config", metavar="CONFIG.yaml", help="settings of the run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one setting")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run (or start it)")
    parser.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="share training.microbatches among N processes: a GPU, or a core, each (default: 1, or those of torchrun)",
    )
    add_device(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
