"""``nmt-core train``: train a model as a YAML file says."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nmt_core.base.messages import say
from nmt_core.commands.model_options import add_device

if TYPE_CHECKING:
    import torch

    from nmt_core.training.config import RunConfig, TrainingConfig
    from nmt_core.training.folder import RunFolder
    from nmt_core.training.ranks import Ranks

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
        type=int,
        metavar="N",
        help="share training.microbatches among N processes: a GPU, or a core, each (default: 1, or those of torchrun)",
    )
    add_device(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Train."""
    return train(args, lambda settings: settings)


def train(args: argparse.Namespace, complete: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Train with the settings of the file and the command line, as ``complete`` completes them."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.config import read_yaml, with_overrides
    from nmt_core.device import choose_device
    from nmt_core.training.config import RunConfig, files_of
    from nmt_core.training.first_model import with_start_settings
    from nmt_core.training.folder import check_spared, run_folder
    from nmt_core.training.launch import is_restarted, ranks_of_torchrun, started
    from nmt_core.training.ranks import Ranks, check_divisible, joined
    from nmt_core.training.recipes import with_recipe
    from nmt_core.training.state import has_state

    settings = with_recipe(with_start_settings(complete(with_overrides(read_yaml(args.config), args.set))))
    config = RunConfig.from_mapping(settings, origin=args.config)
    check_spared(config.folder, [args.config, *files_of(config)])
    given = ranks_of_torchrun()
    ranks = given or Ranks(size=args.processes or 1)
    _check_processes(args, started=given is not None)
    check_divisible(config.training.microbatches, ranks.size)
    with contextlib.ExitStack() as stack:
        held = None
        if ranks.first:
            held = stack.enter_context(run_folder(config.folder))
            if has_state(config.folder) and not (args.resume or is_restarted()):
                raise ConfigError(
                    f"{config.folder}: a run was begun here; --resume goes on with it, another folder starts anew"
                )
        if ranks.size > 1:
            cuda = choose_device(args.device).type == "cuda"
            follow = functools.partial(_train, config, args.device, True)
            others = joined(ranks, cuda=cuda, meeting="env://") if given else started(ranks.size, follow, cuda=cuda)
            ranks = stack.enter_context(others)
        return _train(config, args.device, args.quiet, ranks, held)


def _check_processes(args: argparse.Namespace, *, started: bool) -> None:
    """Raise ConfigError for options that contradict one another."""
    from nmt_core.base.errors import ConfigError

    if args.processes is None:
        return
    if started:
        raise ConfigError("--processes: torchrun has started the processes; leave it out")
    if args.processes < 1:
        raise ConfigError(f"--processes {args.processes}: expected a number from 1 on")
    if args.processes > 1 and ":" in args.device:
        raise ConfigError(f"--device {args.device}: every process takes a GPU of its own; give --device cuda")


def _train(config: RunConfig, device_name: str, quiet: bool, ranks: Ranks, held: RunFolder | None = None) -> int:
    """Train in a folder that is ``held`` by the first process, as one of them; the exit code."""
    from nmt_core.base.memory import keep_memory_of_tensors
    from nmt_core.device import allow_tf32, choose_device, say_if_slow
    from nmt_core.training.folder import check_disk_space
    from nmt_core.training.prepare import prepare
    from nmt_core.training.report import Reporter
    from nmt_core.training.state import has_state, size_of_state
    from nmt_core.training.stop_signals import Interrupted
    from nmt_core.training.trainer import Trainer

    keep_memory_of_tensors()
    training = config.training
    if not ranks.first:
        training, quiet = training.model_copy(update={"tensorboard": False}), True
    prepared = prepare(config, ranks)
    for note in prepared.notes if ranks.first else ():
        say(note)
    device = choose_device(device_name)
    if ranks.size > 1 and device.type == "cuda":
        device = choose_device(f"cuda:{ranks.local}")
    _one_thread_each(training, device)
    if training.precision == "tf32":
        allow_tf32(device)
    if training.precision == "bfloat16" and ranks.first:
        say_if_slow(device)
    for task in prepared.tasks:
        task.loaded.model.to(device)
    reporter = Reporter(training, folder=config.folder, quiet=quiet)
    reporter.begin(prepared.tasks)
    trainer = Trainer(
        prepared.tasks,
        training,
        run=prepared.identity,
        reporter=reporter,
        zeros=prepared.zeros,
        ranks=ranks,
        check_folder=held.check if held else lambda: None,
    )
    if ranks.first:
        check_disk_space(config.folder, size_of_state(trainer.trained))
    if has_state(config.folder):
        trainer.resume()
    try:
        best = trainer.train()
    except Interrupted:
        return 130
    reporter.end(config.folder, best)
    return 0


def _one_thread_each(training: TrainingConfig, device: torch.device) -> None:
    """Have the bits of microbatches not depend on how many cores a process may take, unless the user says how many."""
    import torch

    if training.microbatches > 1 and device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
