"""``nmt-core embed``: vectors of words, phrases and sentences."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_device, add_word_limit
from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.inference.commands.embed:embed"


_EPILOG = """\
examples:
  nmt-core embed --model runs/en-fr --what source-words > en.vec
  nmt-core embed --model runs/en-fr --output phrases.npy phrases.tok.en

Words are written in word2vec's text format. Phrases and sentences are lines of INPUT as the model reads them: each with
its numbers behind tabs, or, to FILE.npy, a float32 matrix. The vector of a line is what the encoder is left with: c of
an RNNencdec, the ends of both directions of an RNNsearch, the last layer of a deep LSTM.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("--model", type=InputFile, required=True, metavar="DIR", help="model folder")
    parser.add_argument("input", type=InputFile, nargs="?", metavar="INPUT", help="tokenised lines, '-' for stdin")
    parser.add_argument(
        "--what", choices=["lines", "source-words", "target-words"], default="lines", help="of what (default: lines)"
    )
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.npy is a matrix ('-')"
    )
    add_word_limit(parser)
    add_device(parser)
