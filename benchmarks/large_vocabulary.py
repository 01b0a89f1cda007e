"""500,000 target words beside 30,000 (Jean et al. 2015): cutting partitions, training, decoding.

    OMP_NUM_THREADS=1 python benchmarks/large_vocabulary.py [--parts partitions,training,decoding]

Words are drawn by Zipf's law, models have random weights of RNNsearch's sizes. Training is measured by
some updates of a partition and by taking its rows out of the tables and putting them back, which is once
for all the updates of a partition. Every measurement has a process of its own, one after the other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import machine, peak_memory, table

from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Request
from nmt_core.layers.products import freeze
from nmt_core.models.build import new_model
from nmt_core.models.presets import preset
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.corpus import BatchPlan, ParallelCorpus, make_batch
from nmt_core.training.data.partitions import Partition, cut_into_partitions
from nmt_core.training.data.stored import Sentences
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import WordTables, build_optimizer, rescale_gradient

SOURCE_WORDS, LARGE, SMALL = 30_000, 500_000, 30_000
SENTENCES, LENGTH = 80, 25


def zipf(words: int, count: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Ids of ``count`` words, the id being the rank."""
    weights = 1.0 / np.arange(1, words - 1)
    drawn = np.searchsorted(np.cumsum(weights) / weights.sum(), np.random.default_rng(seed).random(count))
    return (np.minimum(drawn, words - 3) + len(SPECIAL_WORDS)).astype(np.int32)


def corpus(pairs: int, target_words: int) -> ParallelCorpus:
    """Sentences of equal length."""
    starts = np.arange(pairs + 1, dtype=np.int64) * LENGTH
    sides = (zipf(words, pairs * LENGTH, seed) for seed, words in enumerate((SOURCE_WORDS, target_words)))
    source, target = (Sentences(ids, starts) for ids in sides)
    return ParallelCorpus(source, target, 0)


def partitions(pairs: int) -> list[Any]:
    """How long an epoch takes to be cut."""
    text = corpus(pairs, LARGE)
    plan = [minibatch for (minibatch,) in BatchPlan(SENTENCES).epoch(text, 0)]
    before = peak_memory()
    begin = time.perf_counter()
    sizes = [
        len(part.batches)
        for part in cut_into_partitions(text, plan, words=SMALL, source_words=SOURCE_WORDS, target_words=LARGE)
    ]
    seconds = time.perf_counter() - begin
    return [f"{pairs:,}", seconds, len(sizes), float(np.mean(sizes)), peak_memory() - before]


def train(target_words: int, updates: int) -> list[Any]:
    """Target words per second, the swaps of a partition's rows counted."""
    keep_memory_of_tensors()
    text = corpus(SENTENCES * 1000, target_words)
    model = new_model(preset("rnnsearch"), SOURCE_WORDS, target_words, seed=1).requires_grad_(True)
    optimizer = build_optimizer(TrainingConfig(), model.parameters())
    plan = [minibatch for (minibatch,) in BatchPlan(SENTENCES).epoch(text, 0)]
    large = target_words > SMALL
    part = next(cut_into_partitions(text, plan, words=SMALL, source_words=SOURCE_WORDS, target_words=target_words))
    tables = WordTables(model, optimizer)

    def update(indices: Any) -> None:
        batch = make_batch(text, indices.tolist())
        optimizer.zero_grad()
        backpropagate(model, part.local(batch) if large else batch)
        rescale_gradient(model.parameters(), 1.0)
        optimizer.step()

    swap = 0.0
    if large:
        tables.narrow(part.source.words_C, part.target.words_C)
        update(part.batches[0])
        swap = timed(lambda: swapped(tables, part))
    else:
        update(plan[0])
    begin = time.perf_counter()
    for indices in plan[1 : updates + 1]:
        update(indices)
    seconds = (time.perf_counter() - begin) / updates
    words, batches = SENTENCES * (LENGTH + 1), len(part.batches)
    rate = words / (seconds + swap / batches) if large else words / seconds
    return [f"{target_words:,}", batches if large else "", seconds, swap, rate, peak_memory()]


def swapped(tables: WordTables, part: Partition) -> None:
    """Put a partition's rows back and take the next one's."""
    tables.widen()
    tables.narrow(part.source.words_C, part.target.words_C)


def decode(candidates: bool, sentences: int) -> list[Any]:
    """Words per second of a search in which all translations have the same length."""
    model = new_model(preset("rnnsearch"), SOURCE_WORDS, LARGE, seed=1)
    freeze(model)
    ids = zipf(SOURCE_WORDS, sentences * 15, 5).reshape(sentences, 15)
    predictor = ModelPredictor(model)
    config = DecodingConfig(beam=12, max_length_ratio=0.0, max_length_extra=15, min_length=15)
    names = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(2, LARGE))])
    drawn = np.random.default_rng(3).integers(2, LARGE, (SOURCE_WORDS, 10))
    lexicon = Lexicon(
        {f"s{word}": tuple(Candidate(f"w{i}", 0.1) for i in drawn[word].tolist()) for word in set(ids.flat)}
    )
    lists = CandidateLists(names, frequent=SMALL, lexicon=lexicon, per_word=10)
    chosen = 0

    def search() -> None:
        nonlocal chosen
        narrow: Any = predictor
        if candidates:
            words_C = lists.of(f"s{word}" for word in ids.flat)
            narrow, chosen = predictor.restrict_vocabulary(words_C), len(words_C)
        requests = [Request(number, Sentence(source), config) for number, source in enumerate(ids.tolist())]
        assert len(list(search_all(BeamSearch[int](narrow), requests, batch_tokens=ids.size))) == sentences

    search()
    seconds = timed(search)
    return [f"{chosen:,}" if candidates else f"{LARGE:,}", sentences / seconds, sentences * 16 / seconds, peak_memory()]


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one run."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def alone(work: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
    """The same in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def compared(rows: Sequence[list[Any]], column: int) -> list[list[Any]]:
    """With the ratio to the first row."""
    return [[*row, row[column] / rows[0][column]] for row in rows]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="partitions,training,decoding", help="(default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=10_000_000, help="of the corpus to be cut (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=30)
    args = parser.parse_args()
    parts = args.parts.split(",")
    columns: tuple[str, ...]
    print(machine())
    if "partitions" in parts:
        columns = ("pairs", "seconds", "partitions", "minibatches of each", "more GiB")
        table(f"partitions of {SMALL:,} target words", columns, [alone(partitions, args.pairs)])
    if "training" in parts:
        columns = ("target words", "minibatches", "update, s", "rows in and out, s", "words/s", "peak GiB", "ratio")
        rows = [alone(train, words, args.updates) for words in (SMALL, LARGE)]
        table(f"training, {SMALL:,} words in the softmax, Adadelta", columns, compared(rows, 4))
    if "decoding" in parts:
        columns = ("words looked at", "sentences/s", "words/s", "peak GiB", "ratio")
        rows = [alone(decode, which, args.sentences) for which in (False, True)]
        table(f"beam search, beam 12, {LARGE:,} words, {args.sentences} sentences together", columns, compared(rows, 2))


if __name__ == "__main__":
    main()
