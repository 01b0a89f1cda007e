"""Gives changed inputs to every reader and says which of them break it.

For instance::

  python -m tests.fuzz --inputs 100000                    all targets, deterministic
  python -m tests.fuzz --target moses.ini --seed 7 --inputs 20000 --engine hypothesis
  python -m tests.fuzz --target weights --seed 7 --replay 1234

``mutate`` changes valid inputs, ``hypothesis`` builds inputs of the words of a format. Findings are written to
``--findings``, and belong below tests/fuzz/seeds once they are mended: the test suite reads them again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.harness import Tally, limit_memory, scratch
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import Target, targets


def main() -> int:
    """Parse and run."""
    args = _parser().parse_args()
    torch.set_num_threads(1)
    with scratch() as folder:
        known = targets(folder)
        chosen = [known[name] for name in args.target] if args.target else list(known.values())
        if args.replay is not None:
            return _replay(chosen[0], args)
        return _run(chosen, args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", action="append", metavar="NAME", help="a reader (may be given again; default: all)")
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="in total (default: 100000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="other inputs (default: 1)")
    parser.add_argument("--engine", choices=["mutate", "hypothesis"], default="mutate")
    parser.add_argument("--replay", type=int, metavar="N", help="only this input of the target; its bytes go to stdout")
    parser.add_argument(
        "--findings", default="fuzz-findings", metavar="DIR", help="where inputs that break a reader go"
    )
    return parser


def _run(chosen: list[Target], args: argparse.Namespace) -> int:
    shares = sum(target.share for target in chosen)
    total = found = 0
    for target in chosen:
        begin, count = time.monotonic(), max(1, round(args.inputs * target.share / shares))
        outcomes, findings = _in_child(target, count, args)
        total, found = total + sum(outcomes.values()), found + len(findings)
        for number, (problem, content) in findings.items():
            _keep(args.findings, f"{target.name}-{number}", content)
            print(f"  {target.name} {number}: {problem}", flush=True)
        rate = sum(outcomes.values()) / (time.monotonic() - begin)
        print(
            json.dumps({"target": target.name, **outcomes, "findings": len(findings), "per_second": round(rate)}),
            flush=True,
        )
    print(f"{total} inputs, {found} kinds of findings")
    return 1 if found else 0


def _in_child(
    target: Target, count: int, args: argparse.Namespace
) -> tuple[dict[str, int], dict[int, tuple[str, bytes]]]:
    """In a process of its own, so that one that is killed is a finding too, and the rest is still done."""
    context = multiprocessing.get_context("fork")
    outcomes: dict[str, int] = {}
    findings: dict[int, tuple[str, bytes]] = {}
    first = 0
    while first < count:
        place, queue = context.Value("q", first), context.SimpleQueue()
        child = context.Process(target=_child, args=(target, range(first, count), args, place, queue))
        child.start()
        while child.is_alive() and queue.empty():
            child.join(0.05)
        if not queue.empty():
            part, broken = queue.get()
            child.join()
            first = count
        else:
            number = place.value
            part, broken = {"broken": 1, "before a crash": number - first}, {}
            content = _content(target, number, args) if args.engine == "mutate" else b""
            broken[number] = (f"the process ended with {child.exitcode}", content)
            first = number + 1
        outcomes = {key: outcomes.get(key, 0) + part.get(key, 0) for key in {*outcomes, *part}}
        findings |= broken
        if len(findings) > 50:
            break
    return outcomes, findings


def _child(target: Target, numbers: range, args: argparse.Namespace, place: Synchronized[int], queue: Any) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    limit_memory()
    tally = Tally()
    if args.engine == "hypothesis":
        from tests.fuzz.built import run_built

        run_built(target, numbers, args.seed, tally)
    else:
        for number in numbers:
            place.value = number
            tally.add(target, number, _content(target, number, args))
    queue.put((dict(tally.outcomes), {one.number: (one.problem, one.content) for one in tally.findings.values()}))


def _content(target: Target, number: int, args: argparse.Namespace) -> bytes:
    return mutated(args.seed, number, target.seeds, target.tokens)


def _replay(target: Target, args: argparse.Namespace) -> int:
    content = _content(target, args.replay, args)
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
    tally = Tally()
    tally.add(target, args.replay, content)
    print(f"\n{dict(tally.outcomes)} {[one.problem for one in tally.findings.values()]}", file=sys.stderr)
    return 1 if tally.findings else 0


def _keep(folder: str, name: str, content: bytes) -> None:
    os.makedirs(folder, exist_ok=True)
    Path(folder, name.replace("/", "_")).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
