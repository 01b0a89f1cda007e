"""What each kind of feature adds: tunes on one annotated list, reports on another, several runs each.

    reranking_table.py --dev val.all.gz --dev-reference val.fr.gz --test test.all.gz \
        --test-reference test.fr.gz --detokenize fr [--runs 3] [--tuner mert] [--compare nmt.fr]

Rows add groups of columns to those of the system; a last part leaves one group out of all. For every row:
BLEU on both lists as mean and standard deviation over the runs, and the p-value of the first run against the
system's own first choices (paired bootstrap). Writes a Markdown table.
"""

from __future__ import annotations

import argparse
import re
import statistics
from typing import NamedTuple

import numpy as np

from nmt_core.files import read_text_lines
from smt_bridge.metrics.plain_text import detokenizer
from smt_bridge.metrics.references import read_references, statistics_against
from smt_bridge.metrics.significance import SystemScore, compare
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NbestPool, pool_from_lists
from smt_bridge.tuning.tune import start_weights, tune

GROUPS = {
    "KenLM": "KENLM|KenLM",
    "RNNencdec": "NMT1",
    "RNNsearch": "NMT0",
    "reverse": "NMTreverse",
    "RNNsearch per word": "NMTnorm|NMTmin|NMTunk",
    "attention": "NMTcoverage|NMTuncovered",
    "lengths": "WordCount|LengthRatio",
    "MBR": "MBR",
}
ROWS = (
    ("Moses' features, tuned again", ()),
    ("+ KenLM, lengths", ("KenLM", "lengths")),
    ("+ RNNencdec", ("RNNencdec",)),
    ("+ RNNsearch", ("RNNsearch",)),
    ("+ both", ("RNNencdec", "RNNsearch")),
    ("+ both, reverse", ("RNNencdec", "RNNsearch", "reverse")),
    ("+ both, reverse, MBR", ("RNNencdec", "RNNsearch", "reverse", "MBR")),
    ("+ everything", tuple(GROUPS)),
)


class Lists(NamedTuple):
    """An annotated list: the arrays, the texts of its entries, and the reference."""

    pool: NbestPool
    texts: list[list[str]]
    reference: list[str]


def load(path: str, reference: str, language: str) -> Lists:
    """Read a list with its reference, as plain text."""
    plain = detokenizer(language)
    with ordered_lists(path) as ordered:
        texts = [read_references(reference, ordered.sentences, path=path)]
        count = statistics_against(texts, tokenize=None, language=language)
        groups = list(ordered.lists)
    texts = [[entry.text for entry in group.entries] for group in groups]
    lines = list(read_text_lines(reference))
    kept = [lines[group.sentence] for group in groups]
    pool = pool_from_lists(((group, count(group)) for group in groups), path=path)
    return Lists(pool, [[plain(text) for text in row[:1]] + row[1:] for row in texts], kept)


def chosen(lists: Lists, weights: dict[str, tuple[float, ...]], language: str) -> list[str]:
    """The best entry of every list as plain text."""
    plain = detokenizer(language)
    best = lists.pool.scores(start_weights(lists.pool, weights)).argmax(axis=1)
    return [row[place] if place == 0 else plain(row[place]) for row, place in zip(lists.texts, best, strict=True)]


def main() -> None:
    """Tune, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--dev", "--dev-reference", "--test", "--test-reference", "--detokenize"):
        parser.add_argument(name, required=True)
    parser.add_argument("--compare", metavar="FILE", help="plain translations of the neural model alone")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tuner", default="mert")
    args = parser.parse_args()
    dev = load(args.dev, args.dev_reference, args.detokenize)
    test = load(args.test, args.test_reference, args.detokenize)
    names = list(dict.fromkeys(column.name for column in dev.pool.columns))
    member = {name: group for name in names for group, start in GROUPS.items() if re.match(rf"(?:{start})", name)}
    member.update({name: "RNNsearch per word" for name in names if re.match("NMT(norm|min|unk)", name)})
    system = [name for name in names if name not in member]
    first = [row[0] for row in test.texts]
    alone = list(read_text_lines(args.compare)) if args.compare else None
    print("| features | values | BLEU dev | BLEU test | p against the system | p against NMT alone |")
    print("|---|---|---|---|---|---|")
    bleu = float(test.pool.metric.score(test.pool.statistics[:, 0].sum(axis=0)))
    print(f"| the system's own choice | | | {bleu:.2f} | | {p_value(alone, first, test.reference)} |")
    if alone is not None:
        result = compared(first, alone, test.reference)
        print(f"| NMT alone | | | {result.score:.2f} | {result.p_value:.4f} | |", flush=True)
    rows = [(title, set(groups)) for title, groups in ROWS]
    rows += [(f"everything but {group}", set(GROUPS) - {group}) for group in GROUPS if group in member.values()]
    for title, groups in rows:
        used = system + [name for name in names if member.get(name) in groups]
        values = sum(column.name in used for column in dev.pool.columns)
        start = {name: (1.0,) * sum(column.name == name for column in dev.pool.columns) for name in used}
        report = tune(dev.pool, start, TuningOptions(tuner=args.tuner, features=tuple(used), runs=args.runs))
        scores = [test.pool.score(start_weights(test.pool, weights)) for weights, _ in report.runs]
        texts = chosen(test, report.runs[0][0], args.detokenize)
        print(
            f"| {title} | {values} | {spread(report.scores)} | {spread(scores)}"
            f" | {p_value(first, texts, test.reference)} | {p_value(alone, texts, test.reference)} |",
            flush=True,
        )


def compared(before: list[str], after: list[str], reference: list[str]) -> SystemScore:
    """BLEU of the second text, and its p-value by paired bootstrap."""
    outputs = {"before": before, "after": after}
    return compare(outputs, [reference], tokenize="13a", metrics=["BLEU"])[0].last


def p_value(before: list[str] | None, after: list[str], reference: list[str]) -> str:
    """The p-value of BLEU by paired bootstrap, where there is something to compare with."""
    if before is None:
        return ""
    return f"{compared(before, after, reference).p_value:.4f}"


def spread(scores: tuple[float, ...] | list[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(scores):.2f} ± {statistics.stdev(scores) if len(scores) > 1 else 0:.2f}"


if __name__ == "__main__":
    main()
