"""The work of `smt-bridge new`: look, plan, say what will be done, and write the directory."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from smt_bridge.new.given import Given, read_given
from smt_bridge.new.machine import Machine, look_at_machine, measure_speed
from smt_bridge.new.plan import Plan, Training, missing, plan_of, trainings
from smt_bridge.new.preparation import write_preparation
from smt_bridge.new.settings import SENTENCES, parameters, phrase_settings, sentence_settings
from smt_bridge.new.workflow import WORKFLOWS

_MEBIBYTE = 1 << 20
_PROCESS = 1024 * _MEBIBYTE  # of memory that a training has besides its model
_SHAPE = 3 * _MEBIBYTE  # of memory that oneDNN keeps for a shape of products
_CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"  # how many shapes
_STATE = 4 * 4  # bytes a parameter in a training: values, gradients, and Adam's two moments
_FILES = 4 * 9  # bytes a parameter on disk: the model, the training's state and its snapshots


def new(args: argparse.Namespace) -> int:
    """Write the directory that the options describe."""
    folder = Path(args.folder)
    if os.path.lexists(folder):
        raise ConfigError(f"{folder}: exists; `new` overwrites nothing: give another directory")
    if re.search(r"[\s#]", str(folder.absolute())):
        problem = "its path has blanks or #, which moses.ini and make cannot hold"
        raise ConfigError(f"{folder}: {problem}; give another directory")
    given = read_given(args.moses_ini, args.train, args.dev, args.nbest, args.test, args.languages, args.truecase_model)
    making = folder.with_name(f".{folder.name}.hybridmt.tmp")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    try:
        machine = look_at_machine(making)
        size = args.size or _usual_size(given, args.minutes)
        _check_room(given, machine, size)
        if given.truecasers:
            train = (given.corpus.text.source, given.corpus.text.target)
            write_preparation(making, given.languages, train, given.corpus.tokenization, given.truecasers)
        speed = 0.0 if args.updates else _measured(given, machine, size, making)
        models = _with_updates(given, machine, size, speed, args)
        plan = plan_of(given, machine, models, speed)
        _write(making, given, machine, models, plan, args.workflow)
        os.rename(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    _tell(folder, given, machine, size, plan, speed, args.workflow)
    return 0


def _usual_size(given: Given, minutes: float) -> str:
    """Small models for little text or time."""
    return "small" if given.corpus.text.pairs < 20_000 or minutes < 30 else "medium"


def _check_room(given: Given, machine: Machine, size: str) -> None:
    """Raise ConfigError where memory or disk is too small for the models of this size."""
    memory, disk = _needs(given, machine, size)
    less = f", or `export {_CAPACITY}=128`, with which trainings are a tenth slower" if _kept(machine) else ""
    for name, needed, free, remedy in (("memory", memory, machine.memory, less), ("disk", disk, machine.disk, "")):
        if needed > free:
            problem = f"models of size {size} need about {_gibibytes(needed)} of {name}, {_gibibytes(free)} are free"
            raise ConfigError(f"{problem}; give a smaller --size or another machine{remedy}")


def _needs(given: Given, machine: Machine, size: str) -> tuple[int, int]:
    """About how many bytes of memory and disk are used at most."""
    number = parameters(SENTENCES[size], given.corpus.source_words, given.corpus.target_words)
    table = os.path.getsize(given.system.table) if given.system.table else 0
    lists = sum(2000 * text.pairs for text in (given.dev, *given.tests))
    return machine.streams * (_PROCESS + _kept(machine) + number * _STATE), 3 * number * _FILES + 2 * table + lists


def _kept(machine: Machine) -> int:
    """Bytes that oneDNN, which multiplies in bfloat16 on a CPU, keeps in a training for the last 1,024 shapes."""
    return _SHAPE * int(os.environ.get(_CAPACITY, "1024")) if machine.bfloat16 and not machine.gpu else 0


def _measured(given: Given, machine: Machine, size: str, folder: Path) -> float:
    """Words a second of RNNsearch in training, with as many trainings at once as there will be."""
    say("new: measuring how fast this machine trains, for half a minute")
    names = [f"speed{number}" for number in range(machine.streams)]
    for name in names:
        text = sentence_settings(name, given, machine, size=SENTENCES[size], updates=100_000, comment="")
        (folder / f"{name}.yaml").write_text(text)
    speed = measure_speed([f"{name}.yaml" for name in names], folder, threads=machine.threads)
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / f"{name}.yaml").unlink()
    return speed


def _with_updates(given: Given, machine: Machine, size: str, speed: float, args: argparse.Namespace) -> list[Training]:
    """The trainings with the updates that were given, or that fit into the minutes."""
    models = trainings(given, machine, size=size, speed=speed)
    if args.updates:
        return [model._replace(updates=args.updates) for model in models]
    others = plan_of(given, machine, models, speed).minutes / machine.streams
    if others > 0.7 * args.minutes:
        say(f"warning: scoring and tuning alone take about {others:.0f} minutes")
    return [model.fitted(max(0.3 * args.minutes, args.minutes - others)) for model in models]


def _write(folder: Path, given: Given, machine: Machine, models: Sequence[Training], plan: Plan, workflow: str) -> None:
    """The settings of the models, the moses.ini and the workflow."""
    for model in models:
        comment = _comment(model)
        if model.name == "rnnencdec":
            text = phrase_settings(model.name, given, machine, size=model.size, updates=model.updates, comment=comment)
        else:
            text = sentence_settings(
                model.name, given, machine, size=model.size, updates=model.updates, comment=comment,
                reverse=model.name == "reverse",
            )  # fmt: skip
        (folder / f"{model.name}.yaml").write_text(text)
    (folder / "moses.ini").write_bytes(given.system.content)
    comment = f"# Made by `smt-bridge new` for {given.system.ini}: {_numbers(given, machine)}."
    for name, written in WORKFLOWS[workflow].items():
        (folder / name).write_text(written(plan, machine, comment=comment))


def _comment(model: Training) -> str:
    """Why a training has these updates."""
    if not model.speed:
        return f"# {model.updates:,} updates, as --updates said: {model.epochs:.1f} epochs."
    return (
        f"# {model.updates:,} updates of {model.size.sentences} examples, {model.epochs:.1f} epochs, take"
        f" {model.minutes:.0f} minutes at {model.speed:,.0f} words/s."
    )


def _numbers(given: Given, machine: Machine) -> str:
    text = given.corpus.text
    return (
        f"{text.pairs:,} pairs, {given.system.pairs:,} phrase pairs; {machine.cores} cores,"
        f" {_gibibytes(machine.memory)} of memory, {machine.gpu or 'no GPU'}"
    )


def _tell(folder: Path, given: Given, machine: Machine, size: str, plan: Plan, speed: float, workflow: str) -> None:
    """What will be done, how long it takes, what it needs, and what is missing; then how to begin."""
    memory, disk = _needs(given, machine, size)
    lines = [_numbers(given, machine), f"the steps, all in {folder}:"]
    for step in plan.steps:
        time = f"{step.minutes:5.0f} min  " if speed else ""
        lines.append(f"  {time}{step.command}")
    lines += [f"missing: {problem}" for problem in missing(given)]
    unused = [text.nbest for text in (given.dev, *given.tests) if text.nbest] if given.moses else []
    lines += [f"not used: {nbest}: `moses` is on the PATH, and its lists are made with it" for nbest in unused]
    if not given.tests and (given.moses or given.dev.nbest):
        lines.append("no --test: the report is of the development set, whose numbers are too good")
    lines.append(f"at most about {_gibibytes(memory)} of memory and {_gibibytes(disk)} of disk")
    if speed:
        total = plan.minutes / machine.streams
        lines.append(f"about {total:.0f} minutes in all, at {speed:,.0f} words/s in training")
    place = shlex.quote(str(folder))
    if workflow == "snakemake":
        lines.append(f"begin: snakemake --directory {place} -s {place}/Snakefile")
    else:
        lines.append(f"begin: make -C {place}; then: make -C {place} serve")
    if workflow == "ems":
        lines.append(f"or by EMS: {place}/hybridmt.meta says how")
    for line in lines:
        say(line)


def _gibibytes(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"
