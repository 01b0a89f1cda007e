"""``nmt-core decode``: translate, one line in, one line out."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import (
    OR_TRANSFORMER,
    add_device,
    add_models,
    add_precision,
    add_shard_arguments,
    add_word_limit,
)
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile
from nmt_core.inference.commands.arguments import SEARCH_KEYS, LanguageModel, add_search, add_unknown_words

RUN = "nmt_core.inference.commands.decode:decode"

_EPILOG = f"""\
examples:
  nmt-core decode --model runs/en-fr < test.tok.en > test.tok.fr
  nmt-core decode --model runs/a,runs/b --raw --input test.en.gz > test.fr
  nmt-core decode --model runs/en-fr --nbest 100 --beam 100 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --replace-unk lexicon --lexicon lex.f2e.gz < test.tok.en > test.tok.fr
  echo 'a <np translation="chat noir">black cat</np> .' | nmt-core decode --model runs/en-fr --xml-input exclusive
  nmt-core decode --model runs/en-fr --lm lm.fr.arpa.gz=0.1 < test.tok.en > test.tok.fr
  nmt-core decode --model runs/en-fr --guidance moses.ngrams --nbest 12 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --search samples=5 temperature=0.8 < test.tok.en > test.samples
  nmt-core decode --model runs/en-fr --jobs 8 --input web.tok.en.gz --output web.tok.fr.gz

{SEARCH_KEYS}\
  distinct                 of translations of the same text only the first, with --nbest or samples
  samples=N                draw N translations instead of searching
  temperature=T            of samples (1)
  seed=N                   of samples (1)
  guidance_weight=W        of --guidance; log p has weight 1 (0.3)
  guidance_factors=A,B,..  how much n-grams of 1, 2, ... words count (1,0.6,0.1,0.5)
  guidance_joined          n-grams are of whole words, whose parts the model writes with @@ behind all but the last

Every input line gives one output line, an empty line an empty one, which is not searched for: its log p is that of
'nmt-core score', whatever search has. N-best lists are in Moses' format:
  line ||| words ||| NMT0= LOG-PROBABILITY ||| SCORE
with the natural logarithm of p(target | source) and the score translations are ranked by.

With candidates, sentences that are searched together (batch_tokens) share their list of words, and scores
are renormalised over it; 'nmt-core score' gives log p over all words.

With --lm the translations of the whole beam are put in a new order by
  (log p(target | source) + WEIGHT x log p_LM(target)) / length^A
and n-best lists have LM0= LOG-PROBABILITY behind NMT0=. 'nmt-core tune-lm' finds WEIGHT.

With --guidance translations are ranked by
  (log p(target | source) + W x sum over words and n of factor n x (p(the n words that end there) - 1)) / length^A
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    models = parser.add_argument_group("models")
    add_models(models, OR_TRANSFORMER)
    add_device(models)
    add_precision(models)
    search = parser.add_argument_group("search")
    add_search(search)
    search.add_argument(
        "--lm",
        type=LanguageModel,
        metavar="F=WEIGHT",
        help="an n-gram model of the target (ARPA or KenLM's binary) re-ranks the beam",
    )
    search.add_argument(
        "--xml-input",
        choices=("exclusive", "inclusive", "ignore", "pass-through"),
        default="pass-through",
        help='Moses\' markup in the source, <np translation="a||b" prob="0.7||0.3">words</np>: one of the'
        " translations is used, competes, markup is taken out, or is text (default: pass-through)",
    )
    search.add_argument(
        "--guidance",
        type=InputFile,
        metavar="F",
        help="posteriors of n-grams, 'line ||| n-gram ||| p', lines counted from 0: translations that have likely ones"
        " rank higher",
    )
    add_unknown_words(search)
    search.add_argument("--window", type=positive, default=1000, metavar="N", help="lines read ahead and sorted (1000)")
    files = parser.add_argument_group("input and output")
    files.add_argument(
        "--input",
        type=InputFile,
        default="-",
        metavar="F",
        help="source text, plain, gzip, xz or zstd (default: stdin)",
    )
    files.add_argument(
        "--output", type=OutputFile, default="-", metavar="F", help="translations (default: standard output)"
    )
    add_word_limit(files)
    files.add_argument(
        "--raw", action="store_true", help="raw text in, raw text out, by the preprocessor bundled with the model"
    )
    files.add_argument(
        "--nbest", type=positive, default=1, metavar="N", help="N best translations in Moses' n-best format"
    )
    files.add_argument("--scores", action="store_true", help="write log p and a tab in front of each translation")
    files.add_argument(
        "--alignments",
        type=OutputFile,
        metavar="F",
        help="source-target points, a line for each translation; F.jsonl: attention weights",
    )
    files.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="processes, each with one thread on a CPU; with N > 1 and files, a stopped job resumes (default: 1)",
    )
    add_shard_arguments(parser)
