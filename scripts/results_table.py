#!/usr/bin/env python
"""A Markdown table that compares translations: BLEU and chrF with sacrebleu, p against the first system.

With --previous p is against the system of the row before.

Example:
    scripts/results_table.py --reference test.fr Moses=moses.fr NMT=nmt.fr hybrid=hybrid.fr
"""

from __future__ import annotations

import argparse
import sys

from nmt_core.errors import NmtError
from nmt_core.files import read_text_lines
from smt_bridge.metrics.significance import compare


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, help="plain text, one line per sentence")
    parser.add_argument("--tokenize", default="13a", help="sacrebleu's tokeniser (13a)")
    parser.add_argument("--test", choices=["bs", "ar"], default="bs", help="paired bootstrap or randomisation (bs)")
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
    names, paths = zip(*(system.split("=", 1) for system in args.systems), strict=True)
    texts = [list(read_text_lines(path)) for path in paths]
    for path, text in zip(paths, texts, strict=True):
        if len(text) != len(reference):
            raise NmtError(f"{path} has {len(text)} lines but {args.reference} has {len(reference)}")
    rows = ["| system | BLEU | chrF | p (BLEU) |", "|---|---|---|---|"]
    signatures: list[str] = []
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        test = args.test if number else "none"
        other = texts[max(number - 1, 0) if args.previous else 0]
        bleu, chrf = compare(other, text, [reference], tokenize=args.tokenize, test=test)
        p_value = "" if bleu.p_value is None else f"{bleu.p_value:.4f}"
        rows.append(f"| {name} | {bleu.after:.2f} | {chrf.after:.2f} | {p_value} |")
        signatures = [bleu.signature, chrf.signature]
    return [*rows, "", *(f"`{signature}`" for signature in signatures)]


if __name__ == "__main__":
    sys.exit(main())
