"""Training shared by processes beside one process that computes the same microbatches.

    python benchmarks/training_processes.py [--processes 2] [--updates 40] [--rounds 3] [--window 100]

RNNsearch with 256 units and the vocabularies of Multi30k, one microbatch for each of ``--processes``. One process and
several take turns, since the speed of a machine changes. *processor ms* is the processor time of an update, the mean
of the processes; *slowest* is that of the process that needs most for an update, since the others wait for it.
*waits* is how long the first one waits in an update, for others that have longer sentences and for messages. Where
something else runs on the machine, processor time tells more than *ms*, the time of the clock.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from common import SHARED, machine, table
from numpy.typing import NDArray

from nmt_core.processes import keep_memory_of_tensors
from nmt_core.training.config import RunConfig
from nmt_core.training.processes import Ranks, started
from nmt_core.training.report import Reporter
from nmt_core.training.start import prepare
from nmt_core.training.trainer import Trainer

WARM_UP = 5  # updates that are not counted


@dataclass(frozen=True)
class WatchedRanks(Ranks):
    """Processes that know how long they have waited for one another, in seconds of the clock."""

    waits: list[float] = field(default_factory=list)

    def wait_for_all(self) -> None:
        """Take the time of it."""
        begin = time.perf_counter()
        super().wait_for_all()
        self.waits.append(time.perf_counter() - begin)


class Clocks(Reporter):
    """Notes after every update: processor time, the clock, time waited (seconds each), words."""

    def __init__(self, config: RunConfig, ranks: WatchedRanks) -> None:
        super().__init__(config.training, quiet=True)
        self._ranks = ranks
        self.noted: list[tuple[float, float, float, float]] = []

    def update(self, progress: Any, losses: Any, words: int, norm: torch.Tensor) -> None:
        """After an update."""
        self.noted.append((time.process_time(), time.perf_counter(), sum(self._ranks.waits), words))


def settings(args: argparse.Namespace, folder: str) -> RunConfig:
    """A run without a validation before its end."""
    sides = {"source": "en", "target": "fr"}
    text = {side: str(SHARED / f"data/multi30k/train.tok.{language}.gz") for side, language in sides.items()}
    sizes = dict.fromkeys(("embedding", "hidden", "alignment", "maxout"), args.hidden)
    training = {
        "optimizer": "adam",
        "learning_rate": 0.002,
        "gradient": "word",
        "batch_sentences": args.sentences,
        "window": args.window,
        "microbatches": args.processes,
        "max_updates": WARM_UP + args.updates,
        "validate_every": WARM_UP + args.updates + 1,
        "select_by": "nll",
        "precision": args.precision,
    }
    model = {"type": "rnnsearch", **sizes, "initialisation": "glorot", "dropout": 0.2, "embedding_dropout": 0.2}
    data = {**text, "minimum_count": args.minimum_count, "hold_out": 10}
    return RunConfig.from_mapping({"folder": folder, "model": model, "data": data, "training": training}, origin=folder)


def train(config: RunConfig, given: Ranks) -> None:
    """One of the processes; what it notes is in ``folder`` by its rank."""
    torch.set_num_threads(1)
    keep_memory_of_tensors()
    ranks = WatchedRanks(given.rank, given.size, given.local, given.one_machine)
    prepared = prepare(config, ranks)
    clocks = Clocks(config, ranks)
    Trainer(prepared.tasks, config.training, run=prepared.identity, reporter=clocks, ranks=ranks).train()
    np.save(f"{config.folder}/{ranks.rank}.npy", clocks.noted)


def measure(args: argparse.Namespace, processes: int) -> NDArray[np.float64]:
    """For every process and update: processor time, time of the clock, time waited, words."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(args, folder)
        follow = functools.partial(train, config)
        with started(processes, follow, cuda=False) if processes > 1 else nullcontext(Ranks()) as ranks:
            follow(ranks)
        found = np.stack([np.load(f"{folder}/{rank}.npy") for rank in range(processes)])
    return np.concatenate([np.diff(found[..., :3], axis=1), found[:, 1:, 3:]], axis=2)[:, WARM_UP - 1 :]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=int, default=100, help="minibatches sorted by length at a time (100)")
    parser.add_argument("--sentences", type=int, default=64, help="of a microbatch (64)")
    parser.add_argument("--hidden", type=int, default=256, help="units, and the sizes of all other vectors (256)")
    parser.add_argument("--minimum-count", type=int, default=2, help="how often a word of the vocabulary occurs (2)")
    parser.add_argument("--precision", default="float32", help="or bfloat16")
    args = parser.parse_args()
    rounds = [[measure(args, processes) for processes in (1, args.processes)] for _ in range(args.rounds)]
    rows: list[list[float]] = []
    for measured in zip(*rounds, strict=True):
        found = np.concatenate(measured, axis=1)
        slowest, clock, waits = found[..., 0].max(axis=0), found[0, :, 1], found[0, :, 2]
        words = found[0, :, 3].sum() / clock.sum()
        rows.append([len(found), *(1000 * part.mean() for part in (found[..., 0], slowest, clock, waits)), words])
    compared = [[*row, rows[0][2] / row[2], rows[0][3] / row[3]] for row in rows]
    print(machine())
    size = f"n {args.hidden}, {args.processes} microbatches of {args.sentences}, window {args.window}, {args.precision}"
    columns = ("processes", "processor ms", "slowest", "ms", "waits", "words/s", "times one by processor", "times one")
    table(size, columns, compared)


if __name__ == "__main__":
    main()
