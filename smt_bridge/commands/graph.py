"""`smt-bridge graph`: what Moses searched, beyond its n-best lists: longer lists, and smaller graphs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.files import InputFile
from nmt_core.messages import say

if TYPE_CHECKING:
    from smt_bridge.formats.graph_features import GraphFeatures
    from smt_bridge.formats.phrase_graph import PhraseGraph

NAME = "graph"
HELP = "n-best lists of Moses' search graphs, and smaller graphs"
_EXAMPLE = """examples:
  moses -f moses.ini -output-search-graph-hypergraph true gz graphs < test.tok.en
  smt-bridge graph nbest graphs --ini moses.ini --nbest 1000 | gzip > test.nbest1000.gz
  smt-bridge graph prune graphs --ini moses.ini --gap 1 | gzip > small.gz
  smt-bridge graph nbest small.gz --ini moses.ini --weights runs/weights > test.nbest

GRAPHS is the folder or a file of -output-search-graph-hypergraph, or the file of -output-search-graph-extended (also
as -osgx); '-' is standard input. What comes out goes to standard output, in the order of the graphs. moses.ini is that
of the run: it says which features there are. See docs/graphs.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the uses and their options."""
    parser.epilog = _EXAMPLE
    uses = parser.add_subparsers(dest="use", required=True, metavar="nbest|prune")
    nbest = uses.add_parser("nbest", help="the best distinct translations of every graph, as an n-best list of Moses")
    nbest.add_argument("--nbest", type=int, default=100, metavar="N", help="so many of a sentence (%(default)s)")
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
    prune.add_argument(
        "--scale", type=float, default=1.0, metavar="A", help="a path weighs exp(A times its total) (%(default)s)"
    )
    for use in (nbest, prune):
        _add_input(use)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graphs", type=InputFile, metavar="GRAPHS", help="a folder or file of graphs, '-' for stdin")
    parser.add_argument("--ini", type=InputFile, required=True, metavar="FILE", help="the moses.ini of the run")
    parser.add_argument(
        "--weights", type=InputFile, metavar="FILE", help="rank with these, such as those of tune (the moses.ini's)"
    )


def run(args: argparse.Namespace) -> int:
    """One graph after the other, each written before the next is read."""
    from nmt_core.files import open_output
    from smt_bridge.formats.graph_features import read_graph_features
    from smt_bridge.formats.search_graph import read_graphs

    _check(args)
    if (args.graphs, args.ini, args.weights).count("-") > 1:
        raise ConfigError("only one of the inputs can be standard input")
    features = read_graph_features(args.ini, args.weights)
    work = {"nbest": _list, "prune": _smaller}[args.use]
    counts = Counter[str]()
    with open_output("-") as stream:
        for graph in read_graphs(args.graphs, features):
            lines, what = work(graph, features, args)
            stream.write(b"".join(lines))
            stream.flush()
            counts += Counter({"graphs": 1, "arcs": graph.arcs, **what})
    say(f"{NAME} {args.use}: " + ", ".join(f"{number:,} {what}" for what, number in counts.items()))
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.use == "nbest" and args.nbest < 1:
        raise ConfigError("--nbest must be at least 1")
    for name in ("gap", "arcs_per_word", "posterior", "scale"):
        value = getattr(args, name, None)
        if value is not None and not 0.0 <= value < float("inf"):
            raise ConfigError(f"--{name.replace('_', '-')} must be a number from 0 on")


Made = tuple[Iterable[bytes], dict[str, int]]  # what is written for a graph, and what is counted beside


def _list(graph: PhraseGraph, features: GraphFeatures, args: argparse.Namespace) -> Made:
    from smt_bridge.graphs.best_strings import best_strings
    from smt_bridge.graphs.nbest_lines import nbest_lines

    found = best_strings(graph, features.scores(graph), args.nbest)
    counts = {"translations": len(found), "without any": int(not found)}
    return nbest_lines(graph, found, features), counts


def _smaller(graph: PhraseGraph, features: GraphFeatures, args: argparse.Namespace) -> Made:
    from smt_bridge.formats.search_graph import format_graph
    from smt_bridge.graphs import pruning

    scores_E = features.scores(graph)
    if args.gap is not None:
        kept = pruning.within_gap(graph, scores_E, args.gap)
    elif args.arcs_per_word is not None:
        kept = pruning.per_word(graph, scores_E, args.arcs_per_word)
    else:
        kept = pruning.likely(graph, scores_E, args.posterior, args.scale)
    return [format_graph(kept)], {"kept": kept.arcs}
