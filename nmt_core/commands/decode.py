"""``nmt-core decode``: translate, one line in, one line out."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import (
    add_advice_options,
    add_constraint_options,
    add_device,
    add_language_model_options,
    add_long_lines,
    add_models,
    add_part_arguments,
    add_precision,
    add_sampling_options,
    add_search_options,
    add_unknown_options,
)
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

NAME = "decode"


RUN = "nmt_core.inference.commands.decode:decode"

_EPILOG = """\
examples:
  nmt-core decode --model runs/en-fr < test.tok.en > test.tok.fr
  nmt-core decode --model runs/a --model runs/b --raw --input test.en.gz > test.fr
  nmt-core decode --model runs/en-fr --nbest 100 --beam 100 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --replace-unk lexicon --lexicon lex.f2e.gz < test.tok.en > test.tok.fr
  nmt-core decode --model runs/en-fr --constraints phrases.tok.fr --no-repeat-ngram 4 < test.tok.en > test.tok.fr
  echo 'a <np translation="chat noir">black cat</np> .' | nmt-core decode --model runs/en-fr --xml-input exclusive
  nmt-core decode --model runs/en-fr --lm lm.fr.arpa.gz --lm-weight 0.1 < test.tok.en > test.tok.fr
  nmt-core decode --model runs/en-fr --advice moses.ngrams --nbest 12 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --jobs 8 --input web.tok.en.gz --output web.tok.fr.gz
  nmt-core decode --model runs/en-fr --raw --max-words 200 --long-lines split < book.en > book.fr

Every input line gives one output line, an empty line an empty one, which is not searched for: its log p is that of
'nmt-core score', whatever search has. N-best lists are in Moses' format:
  line ||| words ||| NMT0= LOG-PROBABILITY ||| SCORE
with the natural logarithm of p(target | source) and the score translations are ranked by.

With --candidates sentences that are searched together (--batch-tokens) share their list of words, and scores
are renormalised over it; 'nmt-core score' gives log p over all words.

With --lm the translations of the whole beam are put in a new order by
  (log p(target | source) + B x log p_LM(target)) / length^A
and n-best lists have LM0= LOG-PROBABILITY behind NMT0=. 'nmt-core tune-lm' finds B. With --fusion-lm
the log-probabilities written are those of search, log p(target | source) + B x log p_LM(target).

With --advice translations are ranked by
  (log p(target | source) + W x sum over words and n of factor n x (p(the n words that end there) - 1)) / length^A
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    add_model_options(parser.add_argument_group("models"))
    add_search_options(parser.add_argument_group("search"))
    add_sampling_options(parser.add_argument_group("sampling"))
    add_language_model_options(parser.add_argument_group("language models"))
    add_unknown_options(parser.add_argument_group("unknown words"))
    add_constraint_options(parser.add_argument_group("what translations must have"))
    add_advice_options(parser.add_argument_group("advice of another system"))
    _add_file_options(parser.add_argument_group("input and output"))
    group = parser.add_argument_group("several processes")
    group.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="processes, one thread each on a CPU; with files the work goes on after being stopped (default: 1)",
    )
    add_part_arguments(parser)


def add_model_options(group: argparse._ArgumentGroup) -> None:
    """Which models, and how they are run."""
    add_models(group)
    add_device(group)
    add_precision(group)
    add = group.add_argument
    batch = "source words of a batch (default: 1000; on a GPU one for each 4 MiB of its memory)"
    add("--batch-tokens", type=positive, metavar="N", help=batch)
    add("--window", type=positive, default=1000, metavar="N", help="lines read ahead and sorted (default: 1000)")


def _add_file_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--input",
        type=InputFile,
        default="-",
        metavar="F",
        help="source text, plain, gzip, xz or zstd (default: stdin)",
    )
    add("--output", type=OutputFile, default="-", metavar="F", help="translations (default: standard output)")
    add_long_lines(group)
    add("--raw", action="store_true", help="raw text in, raw text out, through the preparation that the model carries")
    add("--nbest", type=positive, default=1, metavar="N", help="N best translations in Moses' n-best format")
    add("--distinct", action="store_true", help="of N-best translations, or samples, of the same text only the first")
    add("--feature-name", default="NMT0", metavar="NAME", help="in n-best lists (default: NMT0)")
    add("--scores", action="store_true", help="write log p and a tab in front of each translation")
    add(
        "--alignments",
        type=OutputFile,
        metavar="F",
        help="source-target points, a line per translation; F.jsonl: attention weights",
    )
    add("--heatmaps", metavar="DIR", help="a picture of the attention for each line, DIR/LINE.png, counted from 1")
    add("--quiet", action="store_true", help="no progress on standard error")
