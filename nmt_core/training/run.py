"""The work of ``nmt-core train``: from the YAML file to a trained model.

What the file leaves out comes from the paper of the preset (``RECIPES``) and from the model that the run starts from.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.config import merge, read_yaml, with_overrides
from nmt_core.device import allow_tf32, choose_device, say_if_slow
from nmt_core.model_directory.directory import FACTOR_VOCABULARIES, LEXICON, SOURCE_VOCABULARY, TARGET_VOCABULARY
from nmt_core.model_directory.settings import check_no_model, read_settings
from nmt_core.models.build import source_factors
from nmt_core.models.presets import with_preset
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.training.config import RunConfig, TrainingConfig, files_of
from nmt_core.training.processes import Ranks, check_divisible, is_restarted, joined, ranks_of_torchrun, started
from nmt_core.training.report import Reporter
from nmt_core.training.start import prepare
from nmt_core.training.state import check_disk_space, check_spared, has_state, run_folder, size_of_state
from nmt_core.training.trainer import Interrupted, Trainer

_LUONG = {
    "optimizer": "sgd",
    "gradient": "sentence",
    "clip": 5.0,
    "batch_sentences": 128,
    "window": 100,
    "schedule": "halving",
}
_RATE_1 = {"learning_rate": 1.0, "max_epochs": 12, "decay_after": 8.0}
_RATE_07 = {"learning_rate": 0.7, "max_epochs": 8, "decay_after": 5.0, "decay_every": 0.5}
_HALF_EPOCHS = {"learning_rate": 1.0, "max_epochs": 6, "decay_after": 4.0, "decay_every": 0.5}
_LUONG_MODELS = (
    "base",
    *(f"global-{score}-feed" for score in ("dot", "general", "concat", "location")),
    *(f"local-{window}-feed" for window in ("m-general", "p-dot", "p-general")),
)
RECIPES: Mapping[str, Mapping[str, Any]] = {
    # Cho et al. 2014, section 4.1: 64 random pairs an update (no windows sorted by length), Adadelta
    "rnnencdec-cho2014": {"batch_sentences": 64, "window": 1},
    # Luong et al. 2015b, section 4.1: 12 epochs with dropout, the rate halved after every one from the 8th on
    **{f"luong2015-{name}": {**_LUONG, **_RATE_1} for name in _LUONG_MODELS},
    # Luong et al. 2015a, section 4.2
    **{f"luong2015-{name}": {**_LUONG, **_RATE_07} for name in ("copy4", "copy6")},
    # Luong and Manning 2016 (thesis, 5.3.2)
    "luong2016-hybrid": {**_LUONG, **_HALF_EPOCHS},
    # Luong et al. 2016, section 4.2
    "luong2016-multitask": {**_LUONG, **_RATE_1, "learning_rate": 0.7},
    # Cho et al. 2014, section 4.1.2: 512 n-grams an update
    "cslm-cho2014": {"batch_tokens": 512},
}

_LONGEST = {"luong2015-copy4": 100, "luong2015-copy6": 100}
"""Longer sentences are left out, where a paper says which (Luong et al. 2015a, section 4.2)."""


def with_recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which ``model.preset`` is replaced by the preset's model, trained as its paper trained it.

    What the settings say themselves stays as they say.
    """
    model = settings.get("model")
    if not isinstance(model, Mapping):
        return dict(settings)
    name = str(model.get("preset"))
    recipe = {"training": RECIPES[name]} if name in RECIPES else {}
    if name in _LONGEST and "data" in settings:
        recipe["data"] = {"max_length": _LONGEST[name]}
    return {**merge(recipe, settings), "model": with_preset(model)}


def train(args: argparse.Namespace) -> int:
    """The work of ``nmt-core train``, as one process or several; the exit code."""
    settings = with_language_model(with_start_settings(with_overrides(read_yaml(args.config), args.set)))
    config = RunConfig.from_mapping(with_recipe(settings), origin=args.config)
    check_spared(config.folder, [args.config, *files_of(config)])
    given = ranks_of_torchrun()
    ranks = given or Ranks(size=args.processes or 1)
    _check_processes(args, started=given is not None)
    check_divisible(config.training.microbatches, ranks.size)
    with contextlib.ExitStack() as stack:
        check_folder = stack.enter_context(run_folder(config.folder)) if ranks.first else _nothing
        if ranks.first and not (args.resume or is_restarted()):
            _check_new(config.folder)
        if ranks.size > 1:
            cuda = choose_device(args.device).type == "cuda"
            follow = functools.partial(_train, config, args.device, True)
            others = joined(ranks, cuda=cuda, meeting="env://") if given else started(ranks.size, follow, cuda=cuda)
            ranks = stack.enter_context(others)
        return _train(config, args.device, args.quiet, ranks, check_folder)


def with_language_model(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what a file with ``data.text`` leaves out: the best language model has the lowest perplexity."""
    model, data = settings.get("model"), settings.get("data")
    if not isinstance(data, Mapping) or data.get("text") is None:
        return dict(settings)
    has_preset = isinstance(model, Mapping) and "preset" in model
    return merge({"model": {} if has_preset else {"type": "rnnlm"}, "training": {"select_by": "nll"}}, settings)


def _check_processes(args: argparse.Namespace, *, started: bool) -> None:
    """Raise ConfigError for options that contradict one another."""
    if args.processes is None:
        return
    if started:
        raise ConfigError("--processes: torchrun has started the processes; leave it out")
    if args.processes > 1 and ":" in args.device:
        raise ConfigError(f"--device {args.device}: every process takes a GPU of its own; give --device cuda")


def _check_new(folder: str) -> None:
    """Raise ConfigError where a run would replace a model, or the state of another run."""
    if has_state(folder):
        raise ConfigError(f"{folder}: a run was started here; --resume continues it, another directory starts again")
    check_no_model(folder)


def _nothing() -> None:
    """Only the first process looks after the directory."""


def _train(
    config: RunConfig, device_name: str, quiet: bool, ranks: Ranks, check_folder: Callable[[], None] = _nothing
) -> int:
    """Train as one of the processes; the exit code."""
    keep_memory_of_tensors()
    training = config.training
    if not ranks.first:
        quiet = True
    prepared = prepare(config, ranks)
    for note in prepared.notes if ranks.first else ():
        say(note)
    device = _device(device_name, training, ranks)
    for task in prepared.tasks:
        task.loaded.model.to(device)
    reporter = Reporter(training, quiet=quiet)
    reporter.begin(prepared.tasks)
    trainer = Trainer(
        prepared.tasks,
        training,
        run=prepared.identity,
        reporter=reporter,
        zeros=prepared.zeros,
        ranks=ranks,
        check_folder=check_folder,
    )
    if ranks.first:
        check_disk_space(config.folder, size_of_state(trainer.trained))
    if has_state(config.folder):
        trainer.resume()
    try:
        best = trainer.train()
    except Interrupted as stop:
        return 128 + stop.number
    reporter.end(config.folder, best)
    return 0


def _device(name: str, training: TrainingConfig, ranks: Ranks) -> torch.device:
    """The device of this process, set to the precision of the run.

    With ``microbatches`` one thread computes on a CPU, unless the user says how many: else the bits would depend on
    how many cores a process may take.
    """
    device = choose_device(name)
    if ranks.size > 1 and device.type == "cuda":
        device = choose_device(f"cuda:{ranks.local}")
    if training.microbatches > 1 and device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    if training.precision == "tf32":
        allow_tf32(device)
    if training.precision == "bfloat16" and ranks.first:
        say_if_slow(device)
    return device


def with_start_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what they leave to the directory of ``training.start_from``: model, text, order and vocabularies.

    Of a model of the same type the keys that are not given are the directory's. Raises ModelError when there is no
    model in it.
    """
    training = settings.get("training")
    folder = training.get("start_from") if isinstance(training, Mapping) else None
    if not isinstance(folder, str):
        return dict(settings)
    start = read_settings(folder)
    found, data = start.to_mapping(), settings.get("data")
    vocabularies: dict[str, Any] = {
        "source_vocabulary": start.path(folder, SOURCE_VOCABULARY),
        "target_vocabulary": start.path(folder, TARGET_VOCABULARY),
    }
    if found["lexicon"] is not None:
        vocabularies["lexicon"] = start.path(folder, LEXICON)
    if factors := source_factors(start.model):
        names = FACTOR_VOCABULARIES[:factors]
        vocabularies["source_factor_vocabularies"] = [start.path(folder, name) for name in names]
    kept = {key: found[key] for key in ("model", "text", "target_order", "copying")}
    model = settings.get("model")
    if isinstance(model, Mapping) and ("preset" in model or model.get("type", start.model.type) != start.model.type):
        del kept["model"]
    filled = merge(kept, settings)
    return merge({"data": vocabularies}, filled) if isinstance(data, Mapping) else filled
