"""Beam search over real sentences, with a trained model or with random weights of the paper's size.

    OMP_NUM_THREADS=1 python benchmarks/decoding.py --model runs/en-fr --input test.tok.en.gz
    OMP_NUM_THREADS=1 python benchmarks/decoding.py --sizes paper [--sentences 100] [--words 14]
    OMP_NUM_THREADS=1 python benchmarks/decoding.py --sizes paper --preset luong2015-global-general-feed

Every way of searching runs in a process of its own, one after the other and ``--repeat`` times over; the
fastest run counts. *continuous* lets waiting sentences into the running batch, *in fixed batches* searches
the same batches until all their sentences are done. *fill* is how much of ``--batch-tokens`` is live, over
all steps. *floor* is the time that the matrix products alone take when they are made again with nothing
between them. With random weights all translations have ``--words`` words, the peer's too
(``benchmarks/make_peer``), which takes turns with ours.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from common import CPU_TIME_HELP, Products, machine, parallel_text, peak_memory, peer, random_model, table

from nmt_core.base.interfaces import SentencePair
from nmt_core.base.words import split_words
from nmt_core.batches.padding import group_by_tokens
from nmt_core.device import choose_dtype
from nmt_core.files import read_text_lines
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Finished, Request
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.models.presets import preset

COLUMNS = ("search", "beam", "sentences/s", "words/s", "words", "rows", "fill", "GFLOP/s", "of the limit", "peak GiB")


class Task(NamedTuple):
    """What a process does. ``model`` is a folder, or empty for random weights of a preset; ``words`` fixes lengths."""

    model: str
    preset: str
    lines: Sequence[str]
    beam: int
    continuous: bool
    batch_tokens: int
    words: int | None
    dtype: str
    device: str
    floor: int  # sentences whose products are made again
    cpu_time: bool = False


class Outcome(NamedTuple):
    """What a process found out.

    Seconds, words of the best translations (``</s>`` counts), mean rows and mean fill, operations and the
    floor's seconds for one sentence, GiB.
    """

    seconds: float
    words: int
    rows: float
    fill: float
    operations: float
    alone: float
    memory: float


class Watched(BeamSearch[int]):
    """Adds up what the batch holds."""

    steps = 0
    sum_rows = 0
    sum_tokens = 0.0

    def step(self) -> list[Finished[int]]:
        """Count, then search."""
        self.steps += 1
        self.sum_rows += self.rows
        self.sum_tokens += self.tokens
        return super().step()


def measure(task: Task) -> Outcome:
    """One search of all lines."""
    torch.set_num_threads(1)
    dtype = choose_dtype(task.dtype, torch.device(task.device))
    if task.model:
        loaded = load_model(task.model, dtype=dtype, device=task.device)
    else:
        loaded = random_model(preset(task.preset), dtype, task.device)
    predictor = ModelPredictor(loaded.model)
    requests = ready(loaded, task)
    for _ in decode(Watched(predictor), requests[: len(requests) // 8 + 1], task):
        pass
    search, clock = Watched(predictor), time.process_time if task.cpu_time else time.perf_counter
    begin = clock()
    words = sum(len(done.hypotheses[0].words) + 1 for done in decode(search, requests, task))
    seconds = clock() - begin
    memory = peak_memory()
    some = requests[:: max(1, len(requests) // task.floor)] if task.floor else []
    with Products() as products:
        for _ in decode(Watched(predictor), some, task):
            pass
    return Outcome(
        seconds,
        words,
        search.sum_rows / search.steps,
        search.sum_tokens / search.steps / task.batch_tokens,
        products.operations / max(len(some), 1),
        products.seconds_alone(dtype, task.device, clock) / max(len(some), 1),
        memory,
    )


def ready(loaded: LoadedModel, task: Task) -> list[Request[int]]:
    """The requests, the longest first."""
    config = DecodingConfig(beam=task.beam)
    if task.words is not None:
        config = DecodingConfig(
            beam=task.beam, max_length_ratio=0.0, max_length_extra=task.words, min_length=task.words
        )
    sources = sorted(map(loaded.encode_text, task.lines), key=len, reverse=True)
    return [Request(number, source, config) for number, source in enumerate(sources)]


def decode(search: BeamSearch[int], requests: Sequence[Request[int]], task: Task) -> Iterator[Finished[int]]:
    """Search in the way of the task."""
    if task.continuous:
        yield from search_all(search, requests, batch_tokens=task.batch_tokens)
        return
    for group in group_by_tokens([len(request.source) + 1 for request in requests], limit=task.batch_tokens):
        waiting = collections.deque(requests[number] for number in group)
        while waiting:
            search.insert(search.encode(waiting, task.batch_tokens))
        while search.sentences:
            yield from search.step()


def alone(task: Task) -> Outcome:
    """The same in a process of its own, so that memory is the task's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (task,))


def rows(args: argparse.Namespace, lines: Sequence[str], beam: int) -> list[list[Any]]:
    """Ours and the peer's for one beam, in turn."""
    ways = {"continuous": True, "in fixed batches": False}
    words = args.words if args.sizes else None
    runs: dict[str, list[Outcome]] = {name: [] for name in ways}
    peers: list[list[Any]] = []
    for turn in range(args.repeat):
        for name, continuous in ways.items():
            floor = args.floor if turn == 0 else 0
            how = (beam, continuous, args.batch_tokens, words, args.dtype, args.device, floor, args.cpu_time)
            runs[name].append(alone(Task(args.model, args.preset, lines, *how)))
        peers += peer_rows(args, lines, beam)
    found = []
    for name, outcomes in runs.items():
        best, first = min(outcomes, key=lambda outcome: outcome.seconds), outcomes[0]
        rate = len(lines) / best.seconds
        found.append([name, str(beam), rate, best.words / best.seconds, best.words / len(lines), best.rows, best.fill,
                      first.operations * rate / 1e9, first.alone * rate, best.memory])  # fmt: skip
    return found + sorted(peers, key=lambda row: float(row[2]))[-1:]  # the fastest


def peer_rows(args: argparse.Namespace, lines: Sequence[str], beam: int) -> list[list[Any]]:
    """The peer's for one beam, once, where it is installed and the weights are random."""
    if not args.sizes:
        return []
    pairs = [SentencePair(line, line) for line in lines]
    dtype = "bfloat16" if args.dtype == "bfloat16" else "float32"
    options = {"beam": beam, "length": args.words + 1, "least": args.words, "batch": 64, "dtype": dtype}
    theirs = peer("decode", pairs, model=args.preset, threads=1, **options)
    if theirs is None:
        return []
    seconds, words = theirs["processor_seconds" if args.cpu_time else "seconds"], theirs["words"]
    rate, speed = len(lines) / seconds, words / seconds
    return [["JoeyNMT 2.3.0", str(beam), rate, speed, words / len(lines), "", "", "", "", theirs["memory"]]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", default="", metavar="DIR")
    which.add_argument("--sizes", choices=["paper"])
    parser.add_argument("--preset", default="rnnsearch", help="with --sizes (rnnsearch)")
    parser.add_argument("--input", metavar="FILE", help="source text (default: the beginning of the training text)")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beams", type=int, nargs="+", default=[12, 5, 1])
    parser.add_argument("--batch-tokens", type=int, default=1000)
    parser.add_argument("--words", type=int, default=14, help="of translations by random weights")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "tf32"])
    parser.add_argument("--device", default="cpu", help="ours; the peer stays on the CPU")
    parser.add_argument("--floor", type=int, default=100, help="sentences whose products are made again")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--cpu-time", action="store_true", help=CPU_TIME_HELP)
    args = parser.parse_args()
    lines: list[str] = []
    if args.input:
        lines += itertools.islice((line for line in read_text_lines(args.input) if split_words(line)), args.sentences)
    else:
        lines += [pair.source for pair in parallel_text(args.sentences)]
    print(machine())
    found = [row for beam in args.beams for row in rows(args, lines, beam)]
    place = "1 core" if args.device == "cpu" else args.device
    name = args.model or f"{args.preset} of {args.sizes} size, random weights"
    table(f"{name}, {len(lines):,} sentences, {args.dtype}, {place}", COLUMNS, found)


if __name__ == "__main__":
    main()
