"""A plan as a Makefile, or as a Snakefile for a cluster."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence

from smt_bridge.new.machine import Machine
from smt_bridge.new.plan import Step

_WIDTH = 110


def makefile(steps: Sequence[Step], goals: Sequence[str], serve: str, machine: Machine, *, comment: str) -> str:
    """The Makefile. `make` does all, `make -n` shows it, `make serve` makes what is missing and serves."""
    rules = "\n".join(_rule(step) for step in steps)
    return f"""\
{comment}
# A make that was killed goes on where it was.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --jobs={machine.streams}
export OMP_NUM_THREADS := {machine.threads}
export PATH := {os.path.dirname(sys.executable)}:$(PATH)
PORT := 50551

.PHONY: all serve
all: {" ".join(goals)}
serve: {" ".join(goals)}
\t{serve} --port $(PORT)

{rules}"""


def _rule(step: Step) -> str:
    command = _wrapped(step.command.replace("$", "$$"))
    ending = " && touch $@" if step.output.endswith(".trained") else ""
    return f"{step.output}: {' '.join(step.needs)}".rstrip() + f"\n\t{command}{ending}\n"


def _wrapped(command: str) -> str:
    """The command on several lines, each of which begins with an option."""
    lines = [""]
    for part in re.split(r" (?=--)", command):
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return " \\\n\t    ".join(lines)


def snakefile(steps: Sequence[Step], goals: Sequence[str], serve: str, machine: Machine, *, comment: str) -> str:
    """The Snakefile. `snakemake --cores N` does all; a cluster's profile gives a job to each rule."""
    rules = "\n".join(_snake_rule(step, machine) for step in steps)
    return f"""\
{comment}
# `snakemake --cores {machine.cores}` does all; `snakemake --executor slurm --jobs 4` gives each rule to a cluster.
# Then: {serve}
rule all:
    input: {_names(goals)}

{rules}"""


def _snake_rule(step: Step, machine: Machine) -> str:
    done = step.output.endswith(".trained")
    command = step.command.replace("{", "{{").replace("}", "}}")
    output = f'touch("{step.output}")' if done else f'"{step.output}"'
    needs = f"    input: {_names(step.needs)}\n" if step.needs else ""
    name = re.sub(r"\W", "_", step.output)
    return f"""\
rule {name}:
{needs}    output: {output}
    threads: {machine.threads}
    resources: runtime={max(10, round(3 * step.minutes))}
    shell: {f"OMP_NUM_THREADS={{threads}} {command}"!r}
"""


def _names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


Workflow = Callable[..., str]
WORKFLOWS: Mapping[str, tuple[str, Workflow]] = {"make": ("Makefile", makefile), "snakemake": ("Snakefile", snakefile)}
"""The file of each workflow, and what writes it."""
