"""``nmt-core vocab``: a frequency shortlist of the words of a tokenised corpus."""

from __future__ import annotations

import argparse
import itertools

from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, writes_standard_output

_EPILOG = """\
examples:
  nmt-core vocab --size 30000 train.tok.en > en.vocab
  zcat corpus.*.fr.gz | nmt-core vocab --size 15000 --counts - > fr.vocab

One word a line, </s> and <unk> first (on top of --size), then by falling frequency.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    writes_standard_output(parser)
    parser.add_argument(
        "corpus",
        type=InputFile,
        nargs="+",
        metavar="CORPUS",
        help="tokenised text, plain, gzip, xz or zstd; - is standard input",
    )
    parser.add_argument("--size", type=int, metavar="N", help="keep the N most frequent words (default: all)")
    parser.add_argument("--minimum-count", type=int, default=1, metavar="N", help="leave out words seen less often")
    parser.add_argument("--counts", action="store_true", help="write each word's count behind a tab")


def run(args: argparse.Namespace) -> int:
    """Count and write."""
    from nmt_core.base.errors import ConfigError, InputError
    from nmt_core.files import open_output, read_text_lines, write_lines
    from nmt_core.text.vocabulary import UNKNOWN_ID, build_vocabulary

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
