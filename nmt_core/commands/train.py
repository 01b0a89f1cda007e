"""``nmt-core train``: train a model as a YAML file says."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nmt_core.messages import say

if TYPE_CHECKING:
    from nmt_core.training.config import RunConfig

NAME = "train"
HELP = "train a model"

_EPILOG = """\
examples:
  nmt-core train en-fr.yaml
  nmt-core train en-fr.yaml --set training.max_epochs=5 --set folder=runs/short
  nmt-core train en-fr.yaml --resume      (goes on after Ctrl-C, SIGTERM or kill -9)

A small file:
  folder: runs/en-fr
  model: {type: rnnsearch, hidden: 256, embedding: 128, alignment: 128, maxout: 128, dropout: 0.3}
  text: {source_language: en, target_language: fr}
  data: {source: train.tok.en, target: train.tok.fr, dev_source: dev.tok.en, dev_target: dev.tok.fr}
  training: {optimizer: adam, learning_rate: 0.001, gradient: word, max_epochs: 20, validate_every: 500}
'model: {preset: rnnsearch}' takes the sizes of the paper. docs/training.md explains every key.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("config", metavar="CONFIG.yaml", help="settings of the run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one setting")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run (or start it)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Train."""
    return train(args, lambda settings: settings)


def train(args: argparse.Namespace, complete: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Train with the settings of the file and the command line, as ``complete`` completes them."""
    from nmt_core.config import read_yaml, with_overrides
    from nmt_core.memory import keep_freed_memory
    from nmt_core.training.config import RunConfig, begun, with_recipe
    from nmt_core.training.folder import run_folder

    keep_freed_memory()
    settings = with_recipe(begun(complete(with_overrides(read_yaml(args.config), args.set))))
    config = RunConfig.from_mapping(settings, origin=args.config)
    with run_folder(config.folder):
        return _train(config, args)


def _train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train in a folder that is ours."""
    from nmt_core.device import allow_tf32, choose_device
    from nmt_core.errors import ConfigError
    from nmt_core.training.folder import check_room
    from nmt_core.training.prepare import prepare
    from nmt_core.training.report import Reporter
    from nmt_core.training.state import has_state, size_of_state
    from nmt_core.training.trainer import Interrupted, Trainer

    if has_state(config.folder) and not args.resume:
        raise ConfigError(
            f"{config.folder}: a run was begun here; --resume goes on with it, another folder starts anew"
        )
    prepared = prepare(config)
    for note in prepared.notes:
        say(note)
    device = choose_device(args.device)
    if config.training.precision == "tf32":
        allow_tf32(device)
    prepared.loaded.model.to(device)
    reporter = Reporter(config.training, folder=config.folder, quiet=args.quiet)
    reporter.begin(prepared.tasks)
    trainer = Trainer(prepared.tasks, config.training, run=prepared.identity, reporter=reporter, zeros=prepared.zeros)
    check_room(config.folder, size_of_state(trainer.trained))
    if has_state(config.folder):
        trainer.resume()
    try:
        best = trainer.train()
    except Interrupted:
        return 130
    reporter.end(config.folder, best)
    return 0
