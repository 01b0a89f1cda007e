"""``nmt-core vocab``: a frequency shortlist of the words of a tokenised corpus."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile

RUN = "nmt_core.preparation.commands.vocabulary:make_vocabulary"

_EPILOG = """\
examples:
  nmt-core vocab --size 30000 train.tok.en > en.vocab
  zcat corpus.*.fr.gz | nmt-core vocab --size 15000 --counts - > fr.vocab

One word a line, </s> and <unk> first (on top of --size), then by falling frequency.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
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
