"""Speed of scoring pairs, by one or several processes that share the device."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Lock

import torch

from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import PRECISIONS, of_roofline, spent, use_precision
from benchmarks.gpu.work import WORDS, Text, made_up_model
from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.processes import keep_memory_of_tensors

_FORK = multiprocessing.get_context("fork")  # this process never uses the GPU, so those it makes can
_COUNTS = {"cuda": (80_000, 60_000), "cpu": (80, 100)}
Shared = list[tuple[float, float, float]]  # of every kind of pairs: seconds, GiB, share of the roofline


def rows(device: str) -> Iterator[Row]:
    """Pairs a second of RNNsearch, from text to scores: of a phrase table, and of 100-best lists."""
    text = Text(WORDS[device])
    table, lists = _COUNTS[device]
    kinds = {"phrase table": text.table(table), "100-best lists": text.lists(lists)}
    for processes in (1, 2, 4) if device == "cuda" else (1, 2):
        for precision in PRECISIONS[device] if device == "cuda" else ("float32",):
            shares = _together(processes, precision, device, list(kinds.values()))
            for (name, pairs), found in zip(kinds.items(), zip(*shares, strict=True), strict=True):
                seconds = max(share[0] for share in found)
                yield {"what": name, "precision": precision, "processes": processes, "pairs/s": len(pairs) / seconds,
                       "of the roofline": sum(share[2] for share in found),
                       "peak GiB": sum(share[1] for share in found)}  # fmt: skip


def _together(processes: int, precision: str, device: str, kinds: Sequence[Sequence[SentencePair]]) -> list[Shared]:
    """What every process found for its share of the pairs."""
    barrier, one_at_a_time = _FORK.Barrier(processes, timeout=60), _FORK.Lock()
    pipes = [_FORK.Pipe(duplex=False) for _ in range(processes)]
    for place, (_, theirs) in enumerate(pipes):
        mine = [_share(pairs, place, processes) for pairs in kinds]
        _FORK.Process(target=_work, args=(barrier, one_at_a_time, theirs, precision, device, mine), daemon=True).start()
        theirs.close()
    return [ours.recv() for ours, _ in pipes]


def _share(pairs: Sequence[SentencePair], place: int, processes: int) -> Sequence[SentencePair]:
    return pairs[len(pairs) * place // processes : len(pairs) * (place + 1) // processes]


def _work(
    barrier: Barrier,
    one_at_a_time: Lock,
    answers: Connection,
    precision: str,
    device: str,
    kinds: Sequence[Sequence[SentencePair]],
) -> None:
    """One process's share."""
    torch.set_num_threads(1)
    keep_memory_of_tensors()
    dtype = use_precision(precision, device)
    scorer = ModelPairScorer([made_up_model("rnnsearch", device, dtype)])
    found: Shared = []
    for pairs in kinds:
        scorer.score(pairs[: len(pairs) // 8])  # a long job has got its memory
        barrier.wait()
        seconds, memory = spent(lambda pairs=pairs: scorer.score(pairs))
        barrier.wait()
        some = pairs[: len(pairs) // 8]
        with one_at_a_time:  # so that the device's rates are those of the whole device
            share = of_roofline(lambda some=some: scorer.score(some), seconds * len(some) / len(pairs), dtype, device)
        found.append((seconds, memory, share))
    answers.send(found)
