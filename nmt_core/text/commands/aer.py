"""``nmt-core aer``: the alignment error rate of alignments beside those of people (Och and Ney 2003)."""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files import read_parallel_lines
from nmt_core.text.alignment import LinkCounts, compared, parse_gold, parse_pharaoh


def judge_alignments(args: argparse.Namespace) -> int:
    """Count and print."""
    counts, pairs = LinkCounts(), 0
    for number, (wanted, found) in enumerate(read_parallel_lines([args.gold, args.alignments]), start=1):
        path = args.gold
        try:
            gold = parse_gold(wanted)
            path = args.alignments
            counts += compared(parse_pharaoh(found), gold)
        except ConfigError as error:
            raise InputError(path, str(error), line=number) from error
        pairs = number
    if not counts.sure:
        raise InputError(args.gold, "has no sure links, such as 0-1; without them there is no recall")
    print(f"AER {counts.error_rate:.4f} precision {counts.precision:.4f} recall {counts.recall:.4f}", end=" ")
    print(f"links {counts.links} sure {counts.sure} pairs {pairs}")
    return 0
