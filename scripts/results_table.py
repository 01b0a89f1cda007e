#!/usr/bin/env python
"""A Markdown table that compares translations: BLEU and chrF with sacrebleu, p against the first system.

With --previous p is against the system of the row before. A name given several times has that many runs, such as
tunings with other seeds: mean and standard deviation, and p of each run against the other system's of the same number.

Example:
    scripts/results_table.py --reference test.fr Moses=moses.fr NMT=nmt.fr hybrid=hybrid.fr
    scripts/results_table.py --reference test.fr Moses=moses.1.fr Moses=moses.2.fr hybrid=hybrid.1.fr hybrid=hybrid.2.fr
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from nmt_core.base.errors import NmtError
from nmt_core.files import read_text_lines
from smt_bridge.metrics.significance import compare


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, help="plain text, one line per sentence")
    parser.add_argument("--tokenize", default="13a", help="sacrebleu's tokeniser (13a)")
    parser.add_argument("--previous", action="store_true", help="compare every system with the one before")
    parser.add_argument("systems", nargs="+", metavar="NAME=FILE", help="the first is compared with")
    args = parser.parse_args()
    try:
        print("\n".join(_table(args)))
    except NmtError as error:
        print(f"results_table: {error}", file=sys.stderr)
        return 2
    return 0


def _table(args: argparse.Namespace) -> list[str]:
    reference = list(read_text_lines(args.reference))
    runs: dict[str, list[list[str]]] = {}
    for name, path in (system.split("=", 1) for system in args.systems):
        text = list(read_text_lines(path))
        if len(text) != len(reference):
            raise NmtError(f"{path} has {len(text)} lines but {args.reference} has {len(reference)}")
        runs.setdefault(name, []).append(text)
    names = list(runs)
    rows = ["| system | BLEU | chrF | p (BLEU) |", "|---|---|---|---|"]
    signatures: list[str] = []
    for number, (name, texts) in enumerate(runs.items()):
        beside = names[max(number - 1, 0) if args.previous else 0]
        if len(runs[beside]) != len(texts):
            raise NmtError(f"{name} has {len(texts)} runs but {beside} has {len(runs[beside])}")
        found = [
            compare({"other": other, name: text}, [reference], tokenize=args.tokenize, metrics=("BLEU", "chrF"))
            for other, text in zip(runs[beside], texts, strict=True)
        ]
        p_values = ", ".join(f"{bleu.last.p_value:.4f}" for bleu, _ in found) if number else ""
        bleus, chrfs = (_spread([metrics[place].last.score for metrics in found]) for place in range(2))
        rows.append(f"| {name} | {bleus} | {chrfs} | {p_values} |")
        signatures = [metric.signature for metric in found[0]]
    return [*rows, "", *(f"`{signature}`" for signature in signatures)]


def _spread(scores: Sequence[float]) -> str:
    """One score, or mean and standard deviation of several."""
    if len(scores) == 1:
        return f"{scores[0]:.2f}"
    return f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"


if __name__ == "__main__":
    sys.exit(main())
