"""``nmt-core train-lm``: train a neural language model on monolingual text, as a YAML file says."""

from __future__ import annotations

import argparse

from nmt_core.commands import train

RUN = "nmt_core.training.run:train_language_model"

_EPILOG = """\
examples:
  nmt-core train-lm lm.fr.yaml
  nmt-core train-lm lm.fr.yaml --resume      (goes on after Ctrl-C, SIGTERM or kill -9)

A small file:
  folder: runs/lm.fr
  model: {hidden: 256, embedding: 128, dropout: 0.3}
  data: {text: mono.tok.fr.gz, dev_text: dev.tok.fr, target_vocabulary: runs/en-fr/target.vocab}
  training: {optimizer: adam, learning_rate: 0.001, gradient: word, max_epochs: 10, validate_every: 500}
With model: {type: cslm, order: 7, embedding: 128, hidden: [256, 128], dropout: 0.3} it is the feed-forward n-gram
model of Cho et al. 2014 (model: {preset: cslm-cho2014} has their sizes) in place of a recurrent one.
The vocabulary of the translation model is what 'decode --fusion-lm' asks for. Everything else is as
in 'nmt-core train'; docs/training.md explains every key.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    train.add_arguments(parser)
    parser.epilog = _EPILOG
