#!/usr/bin/env python
r"""Phrase pairs of a Moses table held out of training, and what models make of them.

    held_out_phrases.py split phrase-table.gz OUT
    held_out_phrases.py table OUT "RNNencdec=OUT/forward" [--reverse "RNNencdec=OUT/reverse"]

split holds out all pairs of every 300th source phrase (those whose digest, blake2b of 64 bits, is 0 modulo 300) and
writes OUT/forward.gz and OUT/reverse.gz, the other pairs with the source phrase first, and with the target phrase
first; OUT/half-0.gz and OUT/half-1.gz, those of one half of the source phrases each (by another digit of the digest);
OUT/held.source, OUT/held.target, OUT/held.moses, the pairs held out with count and lex(target | source); and the same
as OUT/seen.*, pairs of training, of another 300th. table takes natural logarithms of `nmt-core score` in
PREFIX.held and PREFIX.seen, and prints means per word and end, as Markdown; --reverse are scores of sources.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import NmtError
from nmt_core.base.words import split_words
from nmt_core.files import open_output, read_text_lines, write_lines
from smt_bridge.errors import FormatError

EVERY = 300
SAMPLES = {0: "held", 1: "seen"}  # by the digest
Floats = npt.NDArray[np.float64]


class Pair(NamedTuple):
    """A line of the table: how often the pair was extracted, and lex(target | source)."""

    source: str
    target: str
    count: float
    lexical: float


def pairs_of(path: str) -> Iterator[Pair]:
    """The lines of a table. Raises FormatError for one without Moses' four scores and counts."""
    for number, line in enumerate(read_text_lines(path), start=1):
        try:
            source, target, scores, _, counts = line.split(" ||| ")[:5]
            yield Pair(source, target, float(counts.split()[2]), float(scores.split()[3]))
        except (ValueError, IndexError) as error:
            problem = (
                "expected 'source ||| target ||| four scores ||| alignment ||| three counts'; take Moses' own table"
            )
            raise FormatError(path, problem, line=number) from error


def sample_of(source: str) -> str | None:
    """``held``, ``seen``, or neither."""
    return SAMPLES.get(_digest(source) % EVERY)


def half_of(source: str) -> int:
    """Which of the two halves a source phrase belongs to, 0 or 1."""
    return _digest(source) // EVERY % 2


def _digest(source: str) -> int:
    return int.from_bytes(hashlib.blake2b(source.encode("utf-8"), digest_size=8).digest(), "big")


def split(table: str, out: Path) -> None:
    """Write training pairs both ways and by halves, and the two samples."""
    samples: dict[str, list[Pair]] = {name: [] for name in SAMPLES.values()}
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        names = ("forward", "reverse", "half-0", "half-1")
        forward, reverse, *halves = (files.enter_context(open_output(str(out / f"{name}.gz"))) for name in names)
        for pair in pairs_of(table):
            sample = sample_of(pair.source)
            if sample is not None:
                samples[sample].append(pair)
            if sample != "held":
                for stream in (forward, halves[half_of(pair.source)]):
                    write_lines(stream, [f"{pair.source} ||| {pair.target} |||"])
                write_lines(reverse, [f"{pair.target} ||| {pair.source} |||"])
        if not all(samples.values()):
            raise NmtError(f"{table}: has too few source phrases to hold out every {EVERY}th")
    for name, pairs in samples.items():
        columns = {
            "source": [pair.source for pair in pairs],
            "target": [pair.target for pair in pairs],
            "moses": [f"{pair.count:g} {pair.lexical:g}" for pair in pairs],
        }
        for column, lines in columns.items():
            with open_output(str(out / f"{name}.{column}")) as stream:
                write_lines(stream, lines)


def numbers(path: Path) -> Floats:
    """One line, one or more numbers: (N,) or (N, M)."""
    rows = [[float(number) for number in line.split()] for line in read_text_lines(str(path))]
    return np.array(rows, dtype=np.float64).squeeze(axis=1) if len(rows[0]) == 1 else np.array(rows, dtype=np.float64)


def sizes(path: Path) -> Floats:
    """Words and end of every line."""
    return np.array([len(split_words(line)) + 1 for line in read_text_lines(str(path))], dtype=np.float64)


def table(out: Path, forward: Sequence[str], reverse: Sequence[str]) -> Iterator[str]:
    """Means per word and end."""
    counts, lexical = numbers(out / "held.moses").T
    often = counts > 1
    yield "| | trained on | held out, seen once | more often | all |"
    yield "|---|---|---|---|---|"
    for what, side, rows in (("target | source", "target", forward), ("source | target", "source", reverse)):
        words = {name: sizes(out / f"{name}.{side}") for name in SAMPLES.values()}
        found = [row.partition("=") for row in rows]
        scores = [(title, numbers(Path(f"{path}.held")), numbers(Path(f"{path}.seen"))) for title, _, path in found]
        if side == "target":
            logs = [np.array([math.log(value) for value in values]) for values in
                    (lexical, numbers(out / "seen.moses")[:, 1])]  # fmt: skip
            scores.append(("lexical weight, which has no end", logs[0], logs[1]))
        for title, held, seen in scores:
            means = [seen.sum() / words["seen"].sum()]
            means += [held[chosen].sum() / words["held"][chosen].sum() for chosen in (~often, often, held == held)]
            title = f"{title}, ln p({what})".replace("|", "\\|")
            yield f"| {title} | {' | '.join(f'{mean:.3f}' for mean in means)} |"
    yield ""
    yield f"{len(counts)} pairs held out, {int((~often).sum())} of them seen once."


def main() -> int:
    """Split, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("split", help="write training pairs and pairs held out")
    one.add_argument("table", metavar="TABLE")
    one.add_argument("out", type=Path, metavar="OUT")
    one = commands.add_parser("table", help="mean log-probabilities")
    one.add_argument("out", type=Path, metavar="OUT", help="what split wrote")
    one.add_argument("rows", nargs="+", metavar="TITLE=PREFIX")
    one.add_argument("--reverse", action="append", default=[], metavar="TITLE=PREFIX")
    args = parser.parse_args()
    try:
        if args.command == "split":
            split(args.table, args.out)
        else:
            print("\n".join(table(args.out, args.rows, args.reverse)))
    except NmtError as error:
        print(f"held_out_phrases: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
