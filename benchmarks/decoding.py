"""Beam search at the paper's size beside JoeyNMT, and with a trained model beside the machine's limit.

    OMP_NUM_THREADS=1 python benchmarks/decoding.py [--cores 2] [--sentences 200] [--model DIR]

The models of the first table are random, so every translation is made to have as many words as its
source has on average; both programs follow the same number of hypotheses for as many steps. With --model
a real model translates real sentences. *floor* is what the matrix products alone take.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from typing import Any

import torch
from common import Products, machine, parallel_text, peak_memory, peer, random_model, table

from nmt_core.inference.beam_search import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.models.build import preset
from nmt_core.models.checkpoint import LoadedModel, load_model

COLUMNS = ("decoder", "sentences/s", "words/s", "times the peer", "of the floor", "mean words", "peak GiB")


def open_model(folder: str | None, dtype: torch.dtype) -> LoadedModel:
    """A real model, or a random one of the paper's size."""
    return load_model(folder, dtype=dtype) if folder else random_model(preset("rnnsearch"), dtype)


def settings(beam: int, length: int | None) -> DecodingConfig:
    """Any length, or exactly one."""
    if length is None:
        return DecodingConfig(beam=beam)
    return DecodingConfig(beam=beam, min_length=length, max_length_ratio=0.0, max_length_extra=length)


def work(
    barrier: Barrier, answers: Any, folder: str | None, dtype: torch.dtype, config: DecodingConfig, lines: list[str]
) -> None:
    """One core's share."""
    torch.set_num_threads(1)
    translator = Translator([open_model(folder, dtype)], config=config)
    translator.translate(lines[:8])
    barrier.wait()
    begin = time.monotonic()
    words = sum(len(nbest[0].words) for nbest in translator.translate(lines))
    answers.put((begin, time.monotonic(), words, peak_memory()))


def ours(
    folder: str | None, dtype: torch.dtype, config: DecodingConfig, lines: list[str], cores: int
) -> tuple[float, int, float]:
    """Seconds, words of the best translations, and memory of the largest process."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(cores), context.Queue()
    cuts = [len(lines) * core // cores for core in range(cores + 1)]
    jobs = [
        context.Process(target=work, args=(barrier, answers, folder, dtype, config, lines[first:last]))
        for first, last in itertools.pairwise(cuts)
    ]
    for job in jobs:
        job.start()
    begins, ends, words, memory = zip(*[answers.get() for _ in jobs], strict=True)
    for job in jobs:
        job.join()
    return max(ends) - min(begins), sum(words), max(memory)


def floor(folder: str | None, dtype: torch.dtype, config: DecodingConfig, lines: list[str]) -> float:
    """Seconds of the matrix products of these lines alone, on one core."""
    translator = Translator([open_model(folder, dtype)], config=config)
    with Products() as products:
        translator.translate(lines)
    return products.seconds_alone(dtype)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--peer-sentences", type=int, default=64)
    parser.add_argument("--beams", type=int, nargs="+", default=[12])
    parser.add_argument("--model", metavar="DIR")
    args = parser.parse_args()
    pairs = parallel_text(args.sentences)
    lines = [pair.source for pair in pairs]
    length = None if args.model else round(sum(line.count(" ") + 1 for line in lines) / len(lines))
    print(machine())
    for beam in args.beams:
        rows: list[list[Any]] = []
        rate = float("nan")
        if length is not None:
            few = pairs[: args.peer_sentences]
            theirs = peer("decode", few, threads=args.cores, beam=beam, length=length, least=length, batch=32)
            if theirs:
                rate = len(few) / theirs["seconds"]
                mean = theirs["words"] / len(few)
                rows.append([f"JoeyNMT 2.3.0, {args.cores} threads", rate, rate * mean, 1.0, "", mean,
                             theirs["memory"]])  # fmt: skip
        for dtype in (torch.float32, torch.bfloat16):
            config = settings(beam, length)
            seconds, words, memory = ours(args.model, dtype, config, lines, args.cores)
            share = lines[: len(lines) // args.cores]
            alone = floor(args.model, dtype, config, share)
            speed = len(lines) / seconds
            rows.append([str(dtype).removeprefix("torch."), speed, words / seconds, speed / rate, alone / seconds,
                         words / len(lines), memory])  # fmt: skip
        table(f"{args.model or 'rnnsearch, random'}, beam {beam}, {args.cores} cores", COLUMNS, rows)


if __name__ == "__main__":
    main()
