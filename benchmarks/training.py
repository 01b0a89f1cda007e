"""Training updates at the paper's size beside JoeyNMT: forward, backward, clipping, Adam.

    python benchmarks/training.py [--threads 2] [--batches 12] [--rounds 3] [--device cuda] [--model PRESET]

The same sentence pairs, minibatches of 80 sorted by length. *of the limit* is the share of the time that the
matrix products of the updates alone take. All trainers take turns, since the speed of a machine changes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import torch
from common import Products, machine, parallel_text, peak_memory, peer, precisions, quickest, random_model, table, wait

from nmt_core.batches.padding import Batch, pad_pairs
from nmt_core.device import allow_tf32
from nmt_core.models.presets import preset
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.training.config import TrainingConfig
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import build_optimizer, rescale_gradient

SENTENCES = 80
PEER_NAME = "JoeyNMT 2.3.0"


def batches_of(loaded: Any, count: int) -> list[Batch]:
    """Minibatches of pairs sorted by length, in the order of length."""
    pairs = sorted(parallel_text(SENTENCES * count), key=lambda pair: (pair.source.count(" "), pair.target.count(" ")))
    ids = [(loaded.source.encode(pair.source), loaded.target.encode(pair.target)) for pair in pairs]
    return [pad_pairs(ids[first : first + SENTENCES]) for first in range(0, len(ids), SENTENCES)]


def updates(name: str, count: int, *, precision: str, device: str = "cpu") -> tuple[float, float]:
    """Target words per second, and the share of the time that the matrix products alone take."""
    if precision == "tf32":
        allow_tf32(torch.device(device))
    autocast = precision == "bfloat16"
    loaded = random_model(preset(name), torch.float32, device, frozen=False)
    model = loaded.model.train()
    optimizer = build_optimizer(TrainingConfig(optimizer="adam", learning_rate=0.0005), model.parameters())
    batches = [batch.to(device) for batch in batches_of(loaded, count)]

    def update(batch: Batch) -> None:
        optimizer.zero_grad()
        backpropagate(model, batch, scale=1.0 / int(batch.target.mask_BL.sum()), autocast=autocast)
        rescale_gradient(model.parameters(), 1.0)
        optimizer.step()

    for batch in batches[:2]:
        update(batch)
    wait()
    begin = time.perf_counter()
    for batch in batches[2:]:
        update(batch)
    wait()
    seconds = time.perf_counter() - begin
    with Products() as products:
        update(batches[len(batches) // 2])
    whole = quickest(lambda: update(batches[len(batches) // 2]), times=3)
    alone = products.seconds_alone(torch.bfloat16 if autocast else torch.float32, device)
    return sum(int(batch.target.mask_BL.sum()) for batch in batches[2:]) / seconds, alone / whole


def trainers(args: argparse.Namespace) -> Iterator[tuple[str, list[Any]]]:
    """Each trainer once: its name, words per second, share of the limit, peak memory."""
    for dtype in precisions():
        pairs = parallel_text(SENTENCES * args.batches)
        theirs = peer("train", pairs, model=args.model, threads=args.threads, batch=SENTENCES, dtype=dtype)
        if theirs:
            yield f"{PEER_NAME}, {dtype}", [theirs["words"] / theirs["seconds"], "", theirs["memory"]]
    for precision in precisions(args.device):
        speed, alone = updates(args.model, args.batches, precision=precision, device=args.device)
        yield precision, [speed, alone, peak_memory()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--model", default="rnnsearch", help="a preset (rnnsearch)")
    parser.add_argument("--rounds", type=int, default=3, help="of all trainers in turn; the fastest of each counts")
    parser.add_argument("--device", default="cpu", help="ours; the peer stays on the CPU")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_memory_of_tensors()
    best: dict[str, list[Any]] = {}
    for _ in range(args.rounds):
        for name, measured in trainers(args):
            if name not in best or measured[0] > best[name][0]:
                best[name] = measured
    one = best.get(f"{PEER_NAME}, float32", [float("nan")])[0]
    rows = [[name, speed, speed / one, *others] for name, (speed, *others) in best.items()]
    print(machine())
    columns = ("trainer", "target words/s", "times the peer", "of the limit", "peak GiB")
    table(f"{args.model}, minibatches of {SENTENCES}, {args.threads} threads, {args.device}", columns, rows)


if __name__ == "__main__":
    main()
