"""`smt-bridge graph`: what Moses searched, beyond its n-best lists: longer lists, neural search."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile

RUN = "smt_bridge.graphs.command:run"
USES = ("nbest", "search", "list-posteriors")
_EXAMPLE = """examples:
  moses -f moses.ini -output-search-graph-extended graphs < test.tok.en
  smt-bridge graph nbest graphs --ini moses.ini --nbest 1000 | gzip > test.nbest1000.gz
  smt-bridge graph nbest graphs --ini moses.ini --weights runs/weights > test.nbest
  smt-bridge graph search graphs --ini moses.ini --model runs/search --source test.tok.en --nbest 12 > test.nbest
  smt-bridge graph list-posteriors test.nbest100.gz --scale 5 > ngrams

uses:
  nbest            the best distinct translations of every graph, as an n-best list of Moses
  search           of every graph the translations that a neural model likes best
  list-posteriors  how likely n-grams are to be in the translation, by an n-best list with totals

GRAPHS is the file of -output-search-graph-extended (also as -osgx), compressed or not. The output goes to
standard output, in the order of the graphs. See docs/graphs.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options. Defaults depend on the use: ``smt_bridge.graphs.command`` has them."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("use", choices=USES, metavar="USE", help="what to do, one of those below")
    add("graphs", type=InputFile, metavar="GRAPHS", help="the graphs, or the list of list-posteriors, '-' for stdin")
    add("--ini", type=InputFile, metavar="FILE", help="the moses.ini of the run, which names the features of graphs")
    add("--weights", type=InputFile, metavar="FILE", help="rank with these, such as those of tune (the moses.ini's)")
    add("--nbest", type=positive, metavar="N", help="nbest, search: so many of a sentence (nbest 100, search 1)")
    ngrams = parser.add_argument_group("list-posteriors")
    add = ngrams.add_argument
    add("--scale", type=float, metavar="A", help="a hypothesis has the weight exp(A times its total) (1)")
    add("--order", type=int, metavar="N", help="n-grams of up to so many words (4)")
    add("--minimum", type=float, metavar="P", help="leave out what is less likely (0.001)")
    search = parser.add_argument_group("search")
    add = search.add_argument
    add("--model", metavar="DIR", help="the directory of a model; DIR,DIR is an ensemble")
    add("--source", type=InputFile, metavar="FILE", help="the text that Moses translated")
    add("--beam", type=positive, metavar="K", help="hypotheses that are kept (12)")
    add(
        "--graph-weight",
        type=float,
        metavar="G",
        help="of Moses' total (1); that of the model is NMT0 of --weights, or 1",
    )
    add("--gap", type=float, metavar="G", help="leave out arcs whose best path is more than G worse than the best (1)")
    add_word_limit(search, "source")
