#!/usr/bin/env python
r"""How much of a reference lies within the target phrases that phrase tables have for its source.

    scripts/experiments/phrase_column/phrase_coverage.py --source test.tok.en --reference test.tok.fr \
        --table "the table=phrase-table.gz:3" --table "generated=generated.gz:1"

A --table is NAME=FILE:SCORE; of each source phrase, of up to 7 words, the --limit targets (20) with the highest SCORE,
counted from 1, are taken, of equals the first of the file. Printed are, as Markdown, of the n-grams of the reference,
for n from 1 to 4, the shares that lie within a target of some source phrase of their sentence, for each table and for
all together, and how many pairs and source phrases a table has that the first one lacks. An n-gram that a decoder
would put together from two targets is not counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.base.words import split_words
from nmt_core.files import read_text_lines
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import split_tokens, text_of
from smt_bridge.tables.table import read_windows, split_window

LONGEST_PHRASE = 7  # words of a source phrase, as train-model.perl extracts them
LARGEST = 4  # words of an n-gram

NGram = tuple[str, ...]
Targets = Mapping[str, Sequence[str]]


class Table(NamedTuple):
    """A phrase table: its name in the output, the file, and which score ranks its targets, from 0."""

    name: str
    path: str
    score: int


def parse_table(option: str) -> Table:
    """Read NAME=FILE:SCORE. Raises ConfigError."""
    name, equals, rest = option.partition("=")
    path, colon, score = rest.rpartition(":")
    if not (name and equals and path and colon and score.isdecimal() and int(score) > 0):
        raise ConfigError(f"--table {option}: expected NAME=FILE:SCORE, such as table=phrase-table.gz:3")
    return Table(name, path, int(score) - 1)


def ngrams(words: Sequence[str], size: int) -> Iterable[NGram]:
    """All n-grams of so many words, in order."""
    return (tuple(words[place : place + size]) for place in range(len(words) - size + 1))


def phrases(words: Sequence[str]) -> Iterable[str]:
    """The source phrases of a sentence."""
    return (" ".join(found) for size in range(1, LONGEST_PHRASE + 1) for found in ngrams(words, size))


def best_targets(table: Table, wanted: frozenset[str], *, limit: int) -> Targets:
    """The targets of the wanted source phrases. Raises FormatError."""
    rows: dict[str, list[tuple[float, str]]] = {}
    for window in read_windows(table.path):
        if table.score >= window.scores:
            problem = f"has {window.scores} scores; there is no score {table.score + 1}"
            raise FormatError(table.path, problem, line=window.first)
        columns = split_window(window)
        for source, target, scores in zip(columns.sources, columns.targets, columns.scores, strict=True):
            if (phrase := text_of(source)) in wanted:
                rows.setdefault(phrase, []).append((float(split_tokens(scores)[table.score]), text_of(target)))
    ranked = {phrase: sorted(found, key=lambda one: -one[0])[:limit] for phrase, found in rows.items()}
    return {phrase: [target for _, target in found] for phrase, found in ranked.items()}


def shares(
    sources: Sequence[Sequence[str]], references: Sequence[Sequence[str]], tables: Sequence[Targets]
) -> list[float]:
    """Of the n-grams of all references the share within a target of any of the tables, for n = 1, 2, …; 0 of none."""
    found, total = [0] * LARGEST, [0] * LARGEST
    for source, reference in zip(sources, references, strict=True):
        targets = {target for phrase in phrases(source) for table in tables for target in table.get(phrase, ())}
        words = [split_words(target) for target in targets]
        for place in range(LARGEST):
            reached = set(chain.from_iterable(ngrams(target, place + 1) for target in words))
            of_reference = list(ngrams(reference, place + 1))
            found[place] += sum(one in reached for one in of_reference)
            total[place] += len(of_reference)
    return [hits / max(number, 1) for hits, number in zip(found, total, strict=True)]


def report(args: argparse.Namespace) -> Iterable[str]:
    """The lines that are printed. Raises NmtError."""
    sources, references = (
        [split_words(line) for line in read_text_lines(path)] for path in (args.source, args.reference)
    )
    if len(sources) != len(references):
        raise InputError(args.reference, f"has {len(references)} lines, {args.source} {len(sources)}")
    tables = [parse_table(option) for option in args.table]
    wanted = frozenset(phrase for source in sources for phrase in phrases(source))
    targets = [best_targets(table, wanted, limit=args.limit) for table in tables]
    yield "| | words | " + " | ".join(f"{size}-grams" for size in range(2, LARGEST + 1)) + " |"
    yield "|---" * (LARGEST + 1) + "|"
    rows = [(table.name, [found]) for table, found in zip(tables, targets, strict=True)]
    for name, chosen in [*rows, ("all together", targets)] if len(rows) > 1 else rows:
        yield f"| {name} | " + " | ".join(f"{share:.1%}"[:-1] for share in shares(sources, references, chosen)) + " |"
    yield ""
    first = targets[0]
    for table, found in zip(tables, targets, strict=True):
        line = f"{table.name}: {sum(map(len, found.values())):,} pairs of {len(found):,} source phrases"
        if found is not first:
            new = sum(len(set(of_phrase) - set(first.get(phrase, ()))) for phrase, of_phrase in found.items())
            lacking = len(found.keys() - first.keys())
            line += f"; {tables[0].name} lacks {new:,} of these pairs, and {lacking:,} of these source phrases"
        yield line


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised sentences")
    parser.add_argument(
        "--reference", required=True, metavar="FILE", help="their translations, tokenised as the tables"
    )
    parser.add_argument("--table", required=True, action="append", metavar="NAME=FILE:SCORE", help="may be repeated")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="targets of a source phrase (20)")
    args = parser.parse_args()
    try:
        if args.limit < 1:
            raise ConfigError("--limit must be at least 1")
        print("\n".join(report(args)))
    except NmtError as error:
        print(f"phrase_coverage: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
