#!/usr/bin/env python
r"""Minimum Bayes risk as the last step of a merged list, beside the choice by tuned weights (Kumar and Byrne 2004).

    scripts/experiments/merged_lists/mbr_table.py --dev val.rich.gz=val.fr.gz --test flickr.rich.gz=flickr.fr.gz \
        --detokenize fr --weights w.1 --weights w.4 --row "with MBRBLEU0=v.1,v.4"

Every --weights is a file of `smt-bridge tune`; --row names others, one for each, that are compared with them. The
posterior of a hypothesis is exp(scale * total) over its list. The choice has the greatest expected sentence BLEU or
chrF of the tokenised words. The scale is the one of SCALES with the best BLEU of --dev, for each file of weights.
Writes a Markdown table: BLEU and chrF as mean and standard deviation over the files; p of the first file's BLEU and
chrF beside its tuned choice (paired bootstrap, 1,000 samples); the scales, and CPU seconds a sentence for all pairs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from hybrid_table import Lists, load, spread

from smt_bridge.features.mbr import bleu_of_all, shared_ngrams
from smt_bridge.metrics.plain_text import detokenizer
from smt_bridge.metrics.significance import SystemScore, compare
from smt_bridge.moses.weights import read_weights
from smt_bridge.tuning.tune import start_weights

Floats = npt.NDArray[np.float64]
SCALES = (3, 10, 30, 100, 300, 1000)
CHRF_ORDER, BETA = 6, 2


def chrf_of_all(hypotheses: Sequence[str]) -> Floats:
    """Sacrebleu's chrF (N, N) in 0..1 without spaces (Popović 2015): of each hypothesis, the row, against each."""
    rows = [[ord(letter) for letter in text if not letter.isspace()] for text in hypotheses]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    symbols = np.array([letter for row in rows for letter in row], dtype=np.int64)
    precision, recall, orders = np.zeros((3, len(rows), len(rows)))
    for order, shared in enumerate(shared_ngrams(symbols, lengths, orders=CHRF_ORDER)):
        totals = np.maximum(lengths - order, 0)
        both = (totals[:, None] > 0) & (totals[None, :] > 0)
        precision += np.where(both, shared / np.maximum(totals[:, None], 1), 0)
        recall += np.where(both, shared / np.maximum(totals[None, :], 1), 0)
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = BETA**2 * precision + recall
    scores: Floats = np.where(below > 0, (1 + BETA**2) * precision * recall / np.where(below > 0, below, 1), 0)
    return scores


GAINS = {"BLEU": bleu_of_all, "chrF": chrf_of_all}


class Set:
    """A list, and of every pair of hypotheses of a sentence the gains."""

    def __init__(self, argument: str, language: str) -> None:
        self.lists: Lists = load(argument, language)
        self.plain = detokenizer(language)
        self.gains: dict[str, list[Floats]] = {}
        self.seconds: dict[str, float] = {}
        for name, gain in GAINS.items():
            begin = time.process_time()
            self.gains[name] = [gain(texts).astype(np.float32) for texts in self.lists.texts]
            self.seconds[name] = (time.process_time() - begin) / len(self.lists.texts)

    def totals(self, path: str) -> Floats:
        """Of the hypotheses (S, L) under the weights of a file."""
        pool = self.lists.pool
        return pool.scores(start_weights(pool, read_weights(path)))

    def chosen(self, totals: Floats, metric: str = "", scale: float = 1.0) -> npt.NDArray[np.intp]:
        """The place of the best hypothesis of each sentence: by its total, or by the expected metric."""
        if not metric:
            return totals.argmax(axis=1)
        found = []
        for row, gain in zip(totals, self.gains[metric], strict=True):
            posterior = np.exp(scale * (row[: len(gain)] - row.max()))
            found.append(int((gain @ posterior).argmax()))
        return np.array(found)

    def bleu(self, places: npt.NDArray[np.intp]) -> float:
        """Of these hypotheses."""
        pool = self.lists.pool
        return float(pool.metric.score(pool.statistics[np.arange(len(places)), places].sum(axis=0)))

    def text(self, places: npt.NDArray[np.intp]) -> list[str]:
        """The plain text of these hypotheses."""
        return [self.plain(texts[place]) for texts, place in zip(self.lists.texts, places, strict=True)]


def judged(before: list[str], after: list[str], reference: list[str]) -> tuple[SystemScore, SystemScore]:
    """BLEU and chrF of the second text, each with p."""
    outputs = {"before": before, "after": after}
    bleu, chrf = compare(outputs, [reference], tokenize="13a", metrics=["BLEU", "chrF"])
    return bleu.last, chrf.last


Choice = Callable[[Set, int], npt.NDArray[np.intp]]


def row(title: str, sets: Sequence[Set], choose: Choice, tuned: Sequence[str]) -> str:
    """A line of the table; ``choose`` takes a set and the number of the file of weights."""
    cells = [title]
    for one in sets:
        found = []
        for number, path in enumerate(tuned):
            before, after = (one.text(places) for places in (one.chosen(one.totals(path)), choose(one, number)))
            found.append(judged(before, after, one.lists.reference))
        (bleu, chrf), is_dev = found[0], one is sets[0]
        cells += [spread([first.score for first, _ in found]), spread([second.score for _, second in found])]
        cells += [] if is_dev else [f"{bleu.p_value:.3f}, {chrf.p_value:.3f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Read, choose, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", required=True, metavar="LIST=REFERENCE")
    parser.add_argument("--test", required=True, action="append", metavar="LIST=REFERENCE")
    parser.add_argument("--detokenize", required=True, metavar="LANG")
    parser.add_argument("--weights", required=True, action="append", metavar="FILE")
    parser.add_argument("--row", action="append", default=[], dest="rows", metavar="TITLE=FILE,FILE")
    args = parser.parse_args()
    sets = [Set(one, args.detokenize) for one in (args.dev, *args.test)]
    dev, *tests = sets
    print(f"| | dev BLEU | chrF |{' BLEU | chrF | p, both |' * len(tests)}\n|{'---|' * (3 + 3 * len(tests))}")

    def tuned(files: Sequence[str]) -> Choice:
        return lambda one, number: one.chosen(one.totals(files[number]))

    def risk(metric: str, scales: Sequence[int]) -> Choice:
        return lambda one, number: one.chosen(one.totals(args.weights[number]), metric, scales[number])

    print(row("tuned", sets, tuned(args.weights), args.weights))
    for metric in GAINS:
        scales = []
        for path in args.weights:
            totals = dev.totals(path)
            scores = [dev.bleu(dev.chosen(totals, metric, scale)) for scale in SCALES]
            scales.append(SCALES[int(np.argmax(scores))])
            found = ", ".join(f"{scale} {score:.2f}" for scale, score in zip(SCALES, scores, strict=True))
            print(f"{metric}, {path}: {found}", file=sys.stderr)
        seconds = ", ".join(f"{one.seconds[metric]:.4f}" for one in sets)
        title = f"MBR, {metric}, scales {scales}, {seconds} s"
        print(row(title, sets, risk(metric, scales), args.weights), flush=True)
    for text in args.rows:
        title, _, files = text.partition("=")
        print(row(title, sets, tuned(files.split(",")), args.weights), flush=True)


if __name__ == "__main__":
    main()
