"""A plan as a Makefile, as a Snakefile for a cluster, or as a module of Moses' experiment management system (EMS)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence

from smt_bridge.new.machine import Machine
from smt_bridge.new.plan import Plan, Step

_WIDTH = 110
_CHECK = (
    "$(if $(shell PATH='$(MOSES):$(MOSES)/bin' command -v moses),,"
    "$(error MOSES=$(MOSES): it has no program moses; give the whole path of its directory))"
)


def makefile(plan: Plan, machine: Machine, *, comment: str) -> str:
    """The Makefile. `make` does all, `make -n` shows it, `make serve` makes what is missing and serves.

    `make MOSES=DIR` is for Moses that is not on the PATH.
    """
    other = plan.with_moses
    common = plan.steps if other is None else [step for step in plan.steps if step in other.steps]
    rules = _rules(plan, common)
    if other is not None:
        rules = f"ifdef MOSES\n{_CHECK}\n{_rules(other, common)}\nelse\n{rules}\nendif\n"
    programs = os.path.dirname(sys.executable).replace("$", "$$").replace("#", "\\#")
    return f"""\
{comment}
# A make that was killed goes on with the steps that it was in.
# MOSES=DIR is the whole path of Moses, or of its program's directory.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --jobs={machine.streams}
export OMP_NUM_THREADS := {machine.threads}
export PATH := {programs}:$(if $(MOSES),$(abspath $(MOSES)):$(abspath $(MOSES))/bin:)$(PATH)
PORT := 50551

.PHONY: all serve
{rules}
{chr(10).join(map(_rule, common))}"""


def _rules(plan: Plan, common: Sequence[Step]) -> str:
    """What to make, how to serve, and the steps that are not ``common``."""
    goals = " ".join(plan.goals)
    rules = "".join("\n" + _rule(step) for step in plan.steps if step not in common)
    return f"all: {goals}\nserve: {goals}\n\t{plan.serve} --port $(PORT)\n{rules}"


def _rule(step: Step) -> str:
    command = _wrapped(step.command.replace("$", "$$"))
    ending = " && touch $@" if step.output.endswith(".trained") else ""
    return f"{step.output}: {' '.join(step.needs)}".rstrip() + f"\n\t{command}{ending}\n"


def _wrapped(command: str) -> str:
    """The command on several lines, each of which begins with an option."""
    lines = [""]
    for part in re.findall(r"""(?:'[^']*'|"[^"]*"|(?! --)[^'"])+""", command):  # blanks in quotes are of a name
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return " \\\n\t    ".join(lines)


def snakefile(plan: Plan, machine: Machine, *, comment: str) -> str:
    """The Snakefile. `snakemake --cores N` does all; a cluster's profile gives a job to each rule."""
    rules = "\n".join(_snake_rule(number, step, machine) for number, step in enumerate(plan.steps, start=1))
    return f"""\
{comment}
# `snakemake --cores {machine.cores}` does all; `snakemake --executor slurm --jobs 4` gives each rule to a cluster.
# Then: {plan.serve}
rule all:
    input: {_names(plan.goals)}

{rules}"""


def _snake_rule(number: int, step: Step, machine: Machine) -> str:
    """Its name begins with a letter, whatever the file's does. Without a measured speed no time is asked for."""
    done = step.output.endswith(".trained")
    command = step.command.replace("{", "{{").replace("}", "}}")
    output = f'touch("{step.output}")' if done else f'"{step.output}"'
    needs = f"    input: {_names(step.needs)}\n" if step.needs else ""
    name = re.sub(r"\W", "_", step.output)
    limit = f"    resources: runtime={max(10, round(3 * step.minutes))}\n" if step.minutes else ""
    return f"""\
rule step{number}_{name}:
{needs}    output: {output}
    threads: {machine.threads}
{limit}    shell: {f"OMP_NUM_THREADS={{threads}} {command}"!r}
"""


def _names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def ems_module(plan: Plan, machine: Machine, *, comment: str) -> str:
    """The module HYBRIDMT for EMS, whose steps call the Makefile; EMS starts those that do not wait for each other."""
    steps = "".join(map(_ems_step, plan.steps))
    tuning = (
        ""
        if not any(step.output == _WIRED for step in plan.steps)
        else f"""
# EMS tunes and evaluates the table with its new column by
#   [TRAINING]
#   config = [HYBRIDMT:{_WIRED}]"""
    )
    return f"""\
{comment}
# Put this behind a copy of experiment.meta, which `experiment.perl -meta COPY -max-active {machine.streams}` reads. In
# the configuration name the directory of this file:
#   [HYBRIDMT]
#   hybrid-dir = DIR{tuning}
# `experiment.perl -final-out HYBRIDMT:hybrid` makes all of it.

[HYBRIDMT] single
{steps}all
\tin: {" ".join(plan.goals)}
\tout: hybrid
\tdefault-name: hybridmt/hybrid
\ttemplate: make -C $hybrid-dir && echo $hybrid-dir > OUT
"""


_WIRED = "moses.nmt.ini"


def _ems_step(step: Step) -> str:
    needs = f"\tin: {' '.join(step.needs)}\n" if step.needs else ""
    made = f"$hybrid-dir/{step.output}"
    kept = f"echo {made} > OUT" if step.output.endswith(".trained") else f"ln -sfn {made} OUT"  # EMS wants content
    return f"""\
make-{step.output}
{needs}\tout: {step.output}
\tdefault-name: hybridmt/{step.output}
\ttemplate: make -C $hybrid-dir {step.output} && {kept}
"""


WORKFLOWS: Mapping[str, Mapping[str, Callable[..., str]]] = {
    "make": {"Makefile": makefile},
    "snakemake": {"Snakefile": snakefile},
    "ems": {"Makefile": makefile, "hybridmt.meta": ems_module},
}
"""The files of each workflow, and what writes them."""
