"""`smt-bridge graph search`: neural search among the translations of Moses' graphs."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import check_words
from nmt_core.commands.options import add_word_limit
from nmt_core.files import InputFile
from smt_bridge.commands.file_types import ScorerSpec

if TYPE_CHECKING:
    from smt_bridge.graphs.features import GraphFeatures
    from smt_bridge.graphs.phrase_graph import PhraseGraph
    from smt_bridge.graphs.search import SearchedGraph, Searcher


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--model", type=ScorerSpec, required=True, metavar="DIR", help="the folder of a model; DIR,DIR is an ensemble")
    add("--source", type=InputFile, required=True, metavar="FILE", help="the text that Moses translated")
    add("--beam", type=int, default=12, metavar="K", help="hypotheses followed (%(default)s)")
    add("--nbest", type=int, default=1, metavar="N", help="the N best of those found (%(default)s)")
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
    add("--window", type=int, default=16, metavar="N", help="graphs that are searched together (%(default)s)")
    add_word_limit(parser, "source")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (%(default)s)")


def search_graphs(
    args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]
) -> Iterator[SearchedGraph]:
    """The graphs in their order; without lines where Moses found no translation."""
    from smt_bridge.graphs.reading import beside_lines
    from smt_bridge.graphs.search import search_window

    weight = _nmt_weight(args, features)
    searcher = _open_searcher(args)
    pairs = beside_lines(args.source, graphs, path=args.graphs)
    sentences = ((_source(args, line, graph), graph) for line, graph in pairs if graph is not None)
    while window := list(itertools.islice(sentences, args.window)):
        yield from search_window(searcher, features, window, nmt_weight=weight, graph_weight=args.graph_weight)


def _nmt_weight(args: argparse.Namespace, features: GraphFeatures) -> float:
    """Raises ConfigError where it is not above 0, without which nothing would bound the search."""
    from smt_bridge.graphs.search import FEATURE

    weight, name = args.nmt_weight, "--nmt-weight"
    if weight is None:
        weight, name = features.others.get(FEATURE, (1.0,))[0], f"{args.weights}: {FEATURE}"
    if not 0.0 < weight < float("inf"):
        raise ConfigError(f"{name} must be a number above 0; without a neural model take `smt-bridge graph nbest`")
    return float(weight)


def _source(args: argparse.Namespace, line: bytes, graph: PhraseGraph) -> str:
    from smt_bridge.errors import WiringError
    from smt_bridge.moses_lines import text_of

    text = text_of(line)
    if not text:
        problem = f"{args.graphs} has a graph of sentence {graph.sentence}, but that line of {args.source} has no words"
        raise WiringError(f"{problem}; give the text that Moses translated")
    check_words(text, args.max_words, path=args.source, line=graph.sentence + 1)
    return text


def _open_searcher(args: argparse.Namespace) -> Searcher:
    from smt_bridge.scorers import ScorerOptions
    from smt_bridge.translators import open_searcher

    return open_searcher(
        args.model, ScorerOptions(device=args.device), beam=args.beam, nbest=args.nbest, widest=args.exact
    )
