"""``nmt-core vocab``: a frequency shortlist of the words of a tokenised corpus."""

from __future__ import annotations

import argparse
import itertools

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.text.vocabulary import UNKNOWN_ID, build_vocabulary


def make_vocabulary(args: argparse.Namespace) -> int:
    """Count and write."""
    if args.size is not None and args.size < 1:
        raise ConfigError(f"--size {args.size}: expected at least 1")
    lines = itertools.chain.from_iterable(read_text_lines(path) for path in args.corpus)
    vocabulary = build_vocabulary(lines, size=args.size, minimum_count=args.minimum_count)
    assert vocabulary.counts is not None
    total = sum(vocabulary.counts[UNKNOWN_ID:])
    if not total:
        raise InputError(args.corpus[0], "has no words; expected tokenised text")
    with open_output("-") as stream:
        write_lines(stream, vocabulary.lines(with_counts=args.counts))
    covered = 100.0 * (total - vocabulary.counts[UNKNOWN_ID]) / total
    words_cover = counted(len(vocabulary) - 2, "word covers", "words cover")
    say(f"{words_cover} {covered:.2f} % of {counted(total, 'running word')}")
    return 0
