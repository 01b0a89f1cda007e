"""Scoring pairs of the real phrase table and of real 100-best lists, at the paper's size.

    OMP_NUM_THREADS=1 python benchmarks/pair_scoring.py [--cores 2] [--table 20000] [--lists 60] [--model rnnsearch]
    python benchmarks/pair_scoring.py --device cuda --cores 4 --table 400000 --lists 1000

One process per core for us, as many threads for the peer (``benchmarks/make_peer``), the same pairs, one
after the other in one run. *times the peer*: against its float32. *of the limit*: the time that the matrix
products alone take, made again with nothing between them and by all processes at once, over ours; *left out*:
how many times more operations scoring each pair alone needs. With ``--device cuda`` all processes share the
GPU, the peer stays on the CPU, and *of the roofline* compares with every product at the GPU's highest rate of
operations or of bytes.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

import numpy as np
import torch
from common import (
    CPU_TIME_HELP,
    Products,
    machine,
    nbest_pairs,
    peak_memory,
    peer,
    precisions,
    random_model,
    table,
    table_pairs,
)

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.device import choose_dtype
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer, Softmax
from nmt_core.models.presets import preset
from nmt_core.processes import keep_memory_of_tensors

Scores = list[float]
COLUMNS = ("scorer", "pairs/s", "times the peer", "GFLOP/s", "of the limit", "of the roofline", "left out",
           "peak GiB", "mean error", "largest", "rank correlation")  # fmt: skip


class Setting(NamedTuple):
    """How to score."""

    name: str
    kind: str
    dtype: str
    softmax: Softmax
    device: str
    cpu_time: bool = False


class Alone(NamedTuple):
    """The products of a share: operations, seconds with nothing between them, seconds by the roofline."""

    operations: float
    seconds: float
    roofline: float


class Share(NamedTuple):
    """What one process did: its place, when, its scores, for the full softmax its products, and GiB."""

    place: int
    begin: float
    end: float
    scores: Scores
    products: Alone | None
    memory: float


def work(place: int, barrier: Barrier, answers: Any, setting: Setting, pairs: Sequence[SentencePair]) -> None:
    """One process's share, scored, and then its products alone, both at the same time as the others'."""
    torch.set_num_threads(1)
    keep_memory_of_tensors()
    dtype = choose_dtype(setting.dtype, torch.device(setting.device))
    pair_scorer = ModelPairScorer([random_model(preset(setting.kind), dtype, setting.device)], softmax=setting.softmax)
    pair_scorer.score(pairs)  # a long job has met every shape and got its memory
    clock = time.process_time if setting.cpu_time else time.monotonic
    barrier.wait()
    begin = clock()
    scores = [score.log_prob for score in pair_scorer.score(pairs)]
    end, memory = clock(), peak_memory()
    products = None
    if setting.softmax == "full":
        with Products() as shared:
            pair_scorer.score(pairs)
        roofline = shared.seconds_of_roofline(dtype, setting.device) if setting.device != "cpu" else float("nan")
        barrier.wait()
        products = Alone(shared.operations, shared.seconds_alone(dtype, setting.device, clock), roofline)
    answers.put(Share(place, begin, end, scores, products, memory))


def ours(setting: Setting, pairs: Sequence[SentencePair], cores: int) -> list[Share]:
    """Every process's share, in the order of the pairs."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(cores), context.Queue()
    cuts = [len(pairs) * core // cores for core in range(cores + 1)]
    jobs = [
        context.Process(target=work, args=(core, barrier, answers, setting, pairs[first:last]))
        for core, (first, last) in enumerate(itertools.pairwise(cuts))
    ]
    for job in jobs:
        job.start()
    shares: list[Share] = [answers.get() for _ in jobs]
    for job in jobs:
        job.join()
    return sorted(shares)


def operations_unshared(kind: str, pairs: Sequence[SentencePair]) -> float:
    """Operations of scoring each pair alone, estimated from a hundred of them."""
    loaded = random_model(preset(kind), torch.float32)
    some = pairs[:: max(1, len(pairs) // 100)]
    with Products() as alone, torch.inference_mode():
        for source, target in some:
            loaded.model(pad_pairs([(loaded.source.encode(source), loaded.target.encode(target))]))
    return alone.operations * len(pairs) / len(some)


def rank_correlation(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """Spearman's, of numbers that are hardly ever equal."""
    return float(np.corrcoef(first.argsort().argsort(), second.argsort().argsort())[0, 1])


def peer_rows(args: argparse.Namespace, pairs: Sequence[SentencePair]) -> list[list[Any]]:
    """The peer's rows, in both types, where it is installed."""
    found: list[list[Any]] = []
    some = pairs[: max(args.peer_pairs, 1)]
    for dtype in precisions():
        theirs = peer("score", some, model=args.model, threads=args.cores, batch=64, dtype=dtype)
        if theirs is not None:
            seconds = theirs["processor_seconds"] / args.cores if args.cpu_time else theirs["seconds"]
            rate = len(some) / seconds
            times = rate / found[0][1] if found else 1.0
            name = f"JoeyNMT 2.3.0, {dtype}, {args.cores} threads"
            found.append([name, rate, times, "", "", "", "", theirs["memory"], "", "", ""])
    return found


def seconds_of(shares: Sequence[Share], *, cpu_time: bool) -> float:
    """From the first's begin to the last's end, or the mean of the processes' times."""
    if cpu_time:
        return sum(share.end - share.begin for share in shares) / len(shares)
    return max(share.end for share in shares) - min(share.begin for share in shares)


def rows(args: argparse.Namespace, pairs: Sequence[SentencePair]) -> list[list[Any]]:
    """The table's rows for one input."""
    kind, cores, device = args.model, args.cores, args.device
    found = peer_rows(args, pairs)
    rate = found[0][1] if found else float("nan")
    exact: np.ndarray[Any, Any] | None = None
    settings = [
        *(Setting(dtype, kind, dtype, "full", device, args.cpu_time) for dtype in precisions(device)),
        Setting("float32, no softmax", kind, "float32", "none", device, args.cpu_time),
    ]
    for setting in settings:
        shares = ours(setting, pairs, cores)
        scores = [score for share in shares for score in share.scores]
        seconds = seconds_of(shares, cpu_time=args.cpu_time)
        speed = len(pairs) / seconds
        row: list[Any] = [setting.name, speed, speed / rate]
        products = [share.products for share in shares if share.products is not None]
        if products:
            operations = sum(alone.operations for alone in products)
            roofline = sum(alone.roofline for alone in products)
            row += [operations / seconds / 1e9, max(alone.seconds for alone in products) / seconds]
            row += ["" if device == "cpu" else roofline / seconds, operations_unshared(kind, pairs) / operations]
        else:
            row += ["", "", "", ""]
        row.append(max(share.memory for share in shares))
        if exact is None:
            exact = np.array(scores)
            row += ["", "", ""]
        elif setting.softmax == "none":
            row += ["untrained", "", ""]
        else:
            error = np.abs(np.array(scores) - exact)
            row += [float(error.mean()), float(error.max()), rank_correlation(np.array(scores), exact)]
        found.append(row)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2, help="processes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--table", type=int, default=20_000, metavar="PAIRS")
    parser.add_argument("--lists", type=int, default=60, metavar="SENTENCES")
    parser.add_argument("--peer-pairs", type=int, default=2000)
    parser.add_argument("--model", default="rnnsearch", help="a preset")
    parser.add_argument("--cpu-time", action="store_true", help=CPU_TIME_HELP)
    args = parser.parse_args()
    print(machine())
    place = f"{args.cores} cores" if args.device == "cpu" else f"{args.cores} processes on {args.device}"
    if args.table:
        pairs = table_pairs(args.table)
        title = f"{args.model}, {len(pairs):,} pairs of the phrase table, {place}"
        table(title, COLUMNS, rows(args, pairs))
    if args.lists:
        pairs = nbest_pairs(args.lists)
        title = f"{args.model}, {len(pairs):,} hypotheses of {args.lists} 100-best lists, {place}"
        table(title, COLUMNS, rows(args, pairs))


if __name__ == "__main__":
    main()
