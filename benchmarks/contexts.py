"""Scoring 100-best lists by a continuous-space n-gram model: every distinct context once, and word by word.

    OMP_NUM_THREADS=1 python benchmarks/contexts.py [--sentences 1014] [--model cslm-cho2014]

The model has random weights and the 15,000 words of Cho et al. 2014. Lists are scored in windows of 100, as
``add-features`` has them; for every window in turn, by the product, and by all words of the same hypotheses in
minibatches of 100. CPU time of one thread, reading and sorting of the words included.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence

import torch
from common import machine, nbest_pairs, random_model, table

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch, pad
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.presets import preset

WORDS = 15_000
LISTS = 100
COLUMNS = (
    "lists",
    "hypotheses",
    "words and ends",
    "CPU s, contexts once",
    "word by word",
    "times",
    "largest difference",
)


def word_by_word(loaded: LoadedModel, pairs: Sequence[SentencePair]) -> list[float]:
    """The log-probability of every hypothesis by a product for each of its words."""
    found: list[float] = []
    with torch.inference_mode():
        for first in range(0, len(pairs), LISTS):
            target = [loaded.encode_target(pair.target) for pair in pairs[first : first + LISTS]]
            found += loaded.model(Batch(pad([[] for _ in target]), pad(target))).sum(1).tolist()
    return found


def main() -> None:
    """Score every window both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1014, help="lists to score (default: %(default)s)")
    parser.add_argument("--model", default="cslm-cho2014", help="preset (default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    loaded = random_model(preset(args.model), torch.float32, words=WORDS)
    scorer = ModelPairScorer([loaded])
    lists = [list(group) for _, group in itertools.groupby(nbest_pairs(args.sentences), lambda pair: pair.source)]
    scorer.score(lists[0])
    rows: list[tuple[str, int, int, float, float, float, float]] = []
    for first in range(0, len(lists), LISTS):
        pairs = [SentencePair("", pair.target) for one in lists[first : first + LISTS] for pair in one]
        begin = time.process_time()
        once = [score.log_prob for score in scorer.score(pairs)]
        between = time.process_time()
        each = word_by_word(loaded, pairs)
        seconds = (between - begin, time.process_time() - between)
        words = sum(len(pair.target.split()) + 1 for pair in pairs)
        apart = max(abs(one - other) for one, other in zip(once, each, strict=True))
        rows.append((f"from {first}", len(pairs), words, *seconds, seconds[1] / seconds[0], apart))
        print(*rows[-1], flush=True)
    once_all, each_all = (sum(row[place] for row in rows) for place in (3, 4))
    sizes = (sum(row[1] for row in rows), sum(row[2] for row in rows))
    rows.append(("all", *sizes, once_all, each_all, each_all / once_all, max(row[6] for row in rows)))
    table(f"Contexts scored once, {args.model}; {machine()}", COLUMNS, rows)


if __name__ == "__main__":
    main()
