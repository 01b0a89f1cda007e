"""``nmt-core lexicon``: which target words a source word has, from Moses' lexicon or an aligned corpus."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.inference.commands.lexicon:make_lexicon"


_EPILOG = """\
examples:
  nmt-core lexicon --moses model/lex.f2e --top 10 --model runs/en-fr --output lex.en-fr.gz
  nmt-core lexicon --alignment aligned.grow-diag-final-and --source train.en --target train.fr > lex.en-fr

Lines are 'target-word source-word p(target-word | source-word)' as in Moses' lex.f2e, by source word, the likeliest
first. Moses' other file, lex.e2f, is the lexicon of the other direction; --model notices a mix-up. Moses,
fast_align, eflomal and SIL Thot make alignments.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    origin = parser.add_argument_group("made from").add_argument
    origin("--moses", type=InputFile, metavar="F", help="a lexicon of Moses of this direction, plain, gzip, xz or zstd")
    origin("--source", type=InputFile, metavar="F", help="tokenised source side of a corpus")
    origin("--target", type=InputFile, metavar="F", help="its target side")
    origin(
        "--alignment", type=InputFile, metavar="F", help="its alignment, lines of source-target points such as 0-0 1-2"
    )
    kept = parser.add_argument_group("kept").add_argument
    kept("--top", type=positive, metavar="N", help="the N likeliest target words of a source word (default: all)")
    kept("--minimum-probability", type=float, default=0.0, metavar="P", help="leave out target words below it")
    kept("--null", action="store_true", help="keep words aligned with nothing, as Moses does (IBM Model 1 wants them)")
    parser.add_argument(
        "--model",
        type=InputFile,
        metavar="DIR",
        help="a model folder that the lexicon must fit: direction, escapes",
    )
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="F", help="the lexicon (default: standard output)"
    )
