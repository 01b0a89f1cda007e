"""`smt-bridge graph`: what Moses searched, beyond its n-best lists: longer lists, smaller graphs, oracles."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile

RUN = "smt_bridge.graphs.command:run"
_EXAMPLE = """examples:
  moses -f moses.ini -output-search-graph-hypergraph true gz graphs < test.tok.en
  smt-bridge graph nbest graphs --ini moses.ini --nbest 1000 | gzip > test.nbest1000.gz
  smt-bridge graph prune graphs --ini moses.ini --gap 1 | gzip > small.gz
  smt-bridge graph nbest small.gz --ini moses.ini --weights runs/weights > test.nbest
  smt-bridge graph oracle small.gz --ini moses.ini --reference test.tok.fr > oracle.tok.fr
  smt-bridge graph posteriors small.gz --ini moses.ini --scale 5 --order 2 > bigrams
  smt-bridge graph list-posteriors test.nbest100.gz --scale 5 > ngrams
  smt-bridge graph search small.gz --ini moses.ini --model runs/search --source test.tok.en --nbest 12 > test.nbest

GRAPHS is the folder or a file of -output-search-graph-hypergraph, or the file of -output-search-graph-extended (also
as -osgx); '-' is standard input. What comes out goes to standard output, in the order of the graphs. moses.ini is that
of the run: it says which features there are. See docs/graphs.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the uses and their options."""
    parser.epilog = _EXAMPLE
    uses = parser.add_subparsers(
        dest="use", required=True, metavar="nbest|prune|oracle|posteriors|list-posteriors|search"
    )
    nbest = uses.add_parser("nbest", help="the best distinct translations of every graph, as an n-best list of Moses")
    nbest.add_argument("--nbest", type=positive, default=100, metavar="N", help="so many of a sentence (%(default)s)")
    prune = uses.add_parser("prune", help="the same graphs without the arcs that only bad paths use")
    rules = prune.add_mutually_exclusive_group(required=True)
    rules.add_argument(
        "--gap", type=float, metavar="G", help="keep arcs whose best path is at most G worse than the best of all"
    )
    rules.add_argument(
        "--arcs-per-word", type=float, metavar="N", help="keep so many arcs for a word of the best path, by their gap"
    )
    rules.add_argument(
        "--posterior", type=float, metavar="P", help="keep arcs that at least this share of the paths' weight uses"
    )
    oracle = uses.add_parser("oracle", help="of every graph a translation that is most like the reference")
    oracle.add_argument("--reference", type=InputFile, required=True, metavar="FILE", help="a line for every sentence")
    oracle.add_argument(
        "--beam",
        type=positive,
        default=20,
        metavar="K",
        help="hypotheses followed at each place of a graph (%(default)s)",
    )
    posteriors = uses.add_parser("posteriors", help="how likely n-grams are to be in the translation")
    of_list = uses.add_parser("list-posteriors", help="the same, by an n-best list")
    of_list.add_argument("graphs", type=InputFile, metavar="LIST", help="an n-best list with totals, '-' for stdin")
    for use in (posteriors, of_list):
        use.add_argument("--order", type=int, default=4, metavar="N", help="up to so many words (%(default)s)")
        use.add_argument(
            "--minimum", type=float, default=0.001, metavar="P", help="leave out what is less likely (%(default)s)"
        )
    for use in (prune, posteriors, of_list):
        use.add_argument(
            "--scale", type=float, default=1.0, metavar="A", help="a path weighs exp(A times its total) (%(default)s)"
        )
    search = uses.add_parser("search", help="of every graph the translations that a neural model likes best")
    _add_search_arguments(search)
    for use in (nbest, prune, oracle, posteriors, search):
        _add_input(use)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graphs", type=InputFile, metavar="GRAPHS", help="a folder or file of graphs, '-' for stdin")
    parser.add_argument("--ini", type=InputFile, required=True, metavar="FILE", help="the moses.ini of the run")
    parser.add_argument(
        "--weights", type=InputFile, metavar="FILE", help="rank with these, such as those of tune (the moses.ini's)"
    )


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--model", required=True, metavar="DIR", help="the folder of a model; DIR,DIR is an ensemble")
    add("--source", type=InputFile, required=True, metavar="FILE", help="the text that Moses translated")
    add("--beam", type=positive, default=12, metavar="K", help="hypotheses followed (%(default)s)")
    add("--nbest", type=positive, default=1, metavar="N", help="the N best of those found (%(default)s)")
    add(
        "--exact",
        type=int,
        default=0,
        metavar="MOST",
        help="where a better one may have been missed, follow up to MOST hypotheses, such as 2000, to find it",
    )
    add(
        "--nmt-weight",
        type=float,
        metavar="W",
        help="of log p(target | source) (NMT0 of --weights, else 1)",
    )
    add("--graph-weight", type=float, default=1.0, metavar="G", help="of Moses' total (%(default)s)")
    add_word_limit(parser, "source")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (%(default)s)")
