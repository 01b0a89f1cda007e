#!/usr/bin/env python
r"""What each group of columns of merged lists adds: tunes on one list, reports on others, several runs each.

    scripts/experiments/merged_lists/hybrid_table.py --dev val.rich.gz=val.fr.gz --test flickr.rich.gz=flickr.fr.gz \
        --test coco.rich.gz=coco.fr.gz --halves FirstMoses0,FirstNmt0 --detokenize fr \
        --row "merged=TotalMoses0,TotalNmt0,NMT0,WordCount0" --row "+ reverse=+NMTreverse0" --row "default"

A row without names tunes what `smt-bridge tune` tunes by default. A row's names that begin with + are added to those of
the row before. For every row: values, BLEU on the development list and on each test list as mean and standard deviation
over the runs (tunings with other seeds), and the p-values of the first run against each half (paired bootstrap, 1,000
samples). Without --halves the p-value is against the first of each list, with --beside-first-row against the first run
of the first row. Nothing is tuned on the test lists. Writes a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.base.errors import NmtError
from nmt_core.files import read_text_lines
from smt_bridge.metrics.plain_text import detokenizer
from smt_bridge.metrics.references import read_references, statistics_against
from smt_bridge.metrics.significance import SystemScore, compare
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.recompute import recomputed_columns
from smt_bridge.tuning.held_out import tune_by_plan
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import plan_for_list
from smt_bridge.tuning.pool import Floats, NbestPool, pool_from_lists
from smt_bridge.tuning.tune import start_weights


class Lists(NamedTuple):
    """A merged list with its reference, as plain text."""

    pool: NbestPool
    texts: list[list[str]]
    reference: list[str]
    language: str
    recomputed: tuple[str, ...]

    def chosen(self, weights: Floats) -> list[str]:
        """The best entry of every list as plain text."""
        plain = detokenizer(self.language)
        best = self.pool.scores(weights).argmax(axis=1)
        return [plain(row[place]) for row, place in zip(self.texts, best, strict=True)]

    def bleu(self, weights: Floats) -> float:
        """Of the best entries."""
        return self.pool.score(weights)


def load(argument: str, language: str) -> Lists:
    """Read LIST=REFERENCE."""
    path, _, reference = argument.partition("=")
    with ordered_lists(path) as ordered:
        texts = [read_references(reference, ordered.sentences, path=path)]
        count = statistics_against(texts, tokenize=None, language=language)
        groups = list(ordered.lists)
    lines = list(read_text_lines(reference))
    texts = [[entry.text for entry in group.entries] for group in groups]
    kept = [lines[group.sentence] for group in groups]
    return Lists(
        pool_from_lists(((group, count(group)) for group in groups), path=path),
        texts,
        kept,
        language,
        recomputed_columns(path),
    )


class Row(NamedTuple):
    """Its title, and the features to tune; none: those that are tuned by default."""

    title: str
    names: tuple[str, ...]


def rows_of(arguments: Sequence[str]) -> list[Row]:
    """The rows, in their order."""
    rows: list[Row] = []
    for text in arguments:
        title, _, names = text.partition("=")
        given = [name.strip() for name in names.split(",") if name.strip()]
        before = rows[-1].names if rows and any(name.startswith("+") for name in given) else ()
        rows.append(Row(title, tuple(dict.fromkeys((*before, *(name.lstrip("+") for name in given))))))
    return rows


def report(
    row: Row, dev: Lists, tests: Sequence[Lists], alone: Sequence[Sequence[list[str]]], runs: int
) -> tuple[str, list[list[str]]]:
    """The line of a row, and its first run's translations of each test list.

    ``alone`` are each test list's translations by the systems to compare with; none leaves a cell empty.
    """
    begin = time.process_time()
    plan = plan_for_list(dev.pool, None, TuningOptions(features=row.names or None), recomputed=dev.recomputed)
    names, first = plan.options.features, plan.options.seed
    seeds = range(first, first + runs * plan.options.runs, plan.options.runs)
    options = [plan.options.model_copy(update={"seed": seed}) for seed in seeds]
    found = [tune_by_plan(dev.pool, plan._replace(options=one)) for one in options]
    values = sum(names is None or column.name in names for column in dev.pool.columns)
    cells = [row.title, str(values), spread([report.score for report in found])]
    found_texts = []
    for test, systems in zip(tests, alone, strict=True):
        cells.append(spread([test.bleu(start_weights(test.pool, report.weights)) for report in found]))
        texts = test.chosen(start_weights(test.pool, found[0].weights))
        cells += [p_value(before, texts, test.reference) for before in systems] or [""]
        found_texts.append(texts)
    print(f"{row.title}: {time.process_time() - begin:.0f} s of CPU", file=sys.stderr)
    return f"| {' | '.join(cells)} |", found_texts


def single(half: str, dev: Lists, tests: Sequence[Lists], alone: Sequence[Sequence[list[str]]]) -> str:
    """The line of a half."""
    weights = {half: (1.0,)}
    cells = [f"{half} alone", "", f"{dev.bleu(start_weights(dev.pool, weights)):.2f}"]
    for test, systems in zip(tests, alone, strict=True):
        texts = test.chosen(start_weights(test.pool, weights))
        cells.append(f"{test.bleu(start_weights(test.pool, weights)):.2f}")
        cells += ["" if before == texts else p_value(before, texts, test.reference) for before in systems]
    return f"| {' | '.join(cells)} |"


def compared(before: list[str], after: list[str], reference: list[str]) -> SystemScore:
    """BLEU of the second text, and its p-value by paired bootstrap."""
    outputs = {"before": before, "after": after}
    return compare(outputs, [reference], tokenize="13a", metrics=["BLEU"])[0].last


def p_value(before: list[str], after: list[str], reference: list[str]) -> str:
    """The p-value of BLEU by paired bootstrap."""
    return f"{compared(before, after, reference).p_value:.4f}"


def spread(scores: Sequence[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(scores):.2f} ± {statistics.stdev(scores) if len(scores) > 1 else 0:.2f}"


def main() -> int:
    """Tune, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", required=True, metavar="LIST=REFERENCE")
    parser.add_argument("--test", required=True, action="append", metavar="LIST=REFERENCE")
    parser.add_argument("--detokenize", required=True, metavar="LANG")
    against = parser.add_mutually_exclusive_group()
    against.add_argument("--halves", metavar="A,B")
    against.add_argument("--beside-first-row", action="store_true")
    parser.add_argument("--row", action="append", default=[], dest="rows", metavar="TITLE[=NAMES]")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    try:
        dev, tests = load(args.dev, args.detokenize), [load(one, args.detokenize) for one in args.test]
        halves = args.halves.split(",") if args.halves else []
        alone = [[test.chosen(start_weights(test.pool, {half: (1.0,)})) for half in halves] for test in tests]
        if args.beside_first_row:
            halves = ["first row"]
        elif not halves:
            alone = [[test.chosen(np.zeros(len(test.pool.columns)))] for test in tests]
        judged = "".join(f" test | {' | '.join(f'p, {half}' for half in halves or ['first'])} |" for _ in tests)
        print(f"| columns | values | dev |{judged}\n|{'---|' * (judged.count('|') + 3)}")
        for half in halves if args.halves else ():
            print(single(half, dev, tests, alone), flush=True)
        for place, row in enumerate(rows_of(args.rows)):
            line, texts = report(row, dev, tests, alone, args.runs)
            print(line, flush=True)
            if args.beside_first_row and place == 0:
                alone = [[text] for text in texts]
    except NmtError as error:
        print(f"hybrid_table: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
