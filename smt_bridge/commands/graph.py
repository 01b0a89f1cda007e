"""`smt-bridge graph`: what Moses searched, beyond its n-best lists: longer lists, smaller graphs, oracles."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, writes_standard_output
from smt_bridge.commands.file_types import IniFile, RecordedInput
from smt_bridge.commands.graph_search import add_search_arguments

if TYPE_CHECKING:
    from smt_bridge.graphs.features import GraphFeatures
    from smt_bridge.graphs.phrase_graph import PhraseGraph, Words

NAME = "graph"
_MOST_WORDS = 9  # of an n-gram
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


class _Graphs(InputFile):
    """The type of an argument that names a file of graphs, or a folder of them."""

    def files(self) -> Iterable[str]:
        """The graphs; whatever else is in the folder may be written."""
        from smt_bridge.graphs.reading import files_of_graphs

        yield str(self)
        with contextlib.suppress(NmtError, OSError):
            yield from files_of_graphs(self)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the uses and their options."""
    parser.epilog = _EXAMPLE
    writes_standard_output(parser)
    uses = parser.add_subparsers(
        dest="use", required=True, metavar="nbest|prune|oracle|posteriors|list-posteriors|search"
    )
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
    oracle = uses.add_parser("oracle", help="of every graph a translation that is most like the reference")
    oracle.add_argument("--reference", type=InputFile, required=True, metavar="FILE", help="a line for every sentence")
    oracle.add_argument(
        "--beam", type=int, default=20, metavar="K", help="hypotheses followed at each place of a graph (%(default)s)"
    )
    posteriors = uses.add_parser("posteriors", help="how likely n-grams are to be in the translation")
    of_list = uses.add_parser("list-posteriors", help="the same, by an n-best list")
    of_list.add_argument("graphs", type=RecordedInput, metavar="LIST", help="an n-best list with totals, '-' for stdin")
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
    add_search_arguments(search)
    for use in (nbest, prune, oracle, posteriors, search):
        _add_input(use)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graphs", type=_Graphs, metavar="GRAPHS", help="a folder or file of graphs, '-' for stdin")
    parser.add_argument("--ini", type=IniFile, required=True, metavar="FILE", help="the moses.ini of the run")
    parser.add_argument(
        "--weights", type=IniFile, metavar="FILE", help="rank with these, such as those of tune (the moses.ini's)"
    )


def run(args: argparse.Namespace) -> int:
    """One graph after the other, each written before the next is read."""
    from smt_bridge.graphs.features import read_graph_features
    from smt_bridge.graphs.reading import read_graphs
    from smt_bridge.graphs.search import FEATURE

    _check(args)
    if args.use == "list-posteriors":
        _write(_list_posteriors(args))
        return 0
    features = read_graph_features(args.ini, args.weights, besides=[FEATURE] if args.use == "search" else [])
    works = {"nbest": _lists, "prune": _smaller, "oracle": _oracles, "posteriors": _posteriors, "search": _searched}
    work = works[args.use]
    _write(work(args, features, read_graphs(args.graphs, features)))
    return 0


def _write(parts: Iterable[bytes]) -> None:
    """Each part is written before the next is made."""
    from nmt_core.files import open_output

    with open_output("-") as stream:
        for part in parts:
            stream.write(part)
            stream.flush()


def _check(args: argparse.Namespace) -> None:
    for name in ("nbest", "beam", "window"):
        if getattr(args, name, 1) < 1:
            raise ConfigError(f"--{name} must be at least 1")
    for name in ("gap", "arcs_per_word", "posterior", "scale", "minimum", "graph_weight"):
        value = getattr(args, name, None)
        if value is not None and not 0.0 <= value < float("inf"):
            raise ConfigError(f"--{name.replace('_', '-')} must be a number from 0 on")
    if not 1 <= getattr(args, "order", 1) <= _MOST_WORDS:
        raise ConfigError(f"--order must be from 1 to {_MOST_WORDS}")


def _lists(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    from smt_bridge.graphs.best import best_strings
    from smt_bridge.graphs.lines import nbest_line

    counts = _Counts()
    for graph in graphs:
        found = best_strings(graph, features.scores(graph), min(args.nbest, sys.maxsize))
        counts.add(graph, translations=len(found), without=not found)
        yield b"".join(nbest_line(graph, one, features) for one in found)
    counts.tell(args)


def _smaller(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    from smt_bridge.graphs import prune as pruning
    from smt_bridge.graphs.reading import format_graph

    counts = _Counts()
    for graph in graphs:
        scores_E = features.scores(graph)
        if args.gap is not None:
            kept = pruning.within_gap(graph, scores_E, args.gap)
        elif args.arcs_per_word is not None:
            kept = pruning.per_word(graph, scores_E, args.arcs_per_word)
        else:
            kept = pruning.likely(graph, scores_E, args.posterior, args.scale)
        counts.add(graph, kept=kept.arcs)
        yield format_graph(kept)
    counts.tell(args)


def _oracles(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    """A line for every reference, blank where there is no graph; on stderr BLEU of all."""
    import numpy as np

    from smt_bridge.graphs.oracle import oracle_string
    from smt_bridge.graphs.reading import beside_lines
    from smt_bridge.graphs.word_graph import word_graph
    from smt_bridge.metrics.bleu import COLUMNS, References, bleu
    from smt_bridge.moses_lines import split_tokens
    from smt_bridge.nbest.entry import words_as_text

    counts, sums = _Counts(), np.zeros(COLUMNS, np.int64)
    for line, graph in beside_lines(args.reference, graphs, path=args.graphs):
        reference, found = tuple(split_tokens(line)), None
        if graph is not None:
            found = oracle_string(word_graph(graph, features.scores(graph)), reference, args.beam)
            counts.add(graph, references=found == reference, without=found is None)
        text = b" ".join(found or ())
        yield text + b"\n"
        known = References([words_as_text(b" ".join(reference))], str)
        sums += known.statistics([words_as_text(text)])[0]
    counts.tell(args, f"; BLEU of these is {float(bleu(sums)):.2f}, a lower bound of the graphs' oracle")


def _posteriors(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    """``id ||| n-gram ||| probability``, shorter n-grams and likelier ones first."""
    from smt_bridge.errors import FormatError
    from smt_bridge.graphs.posteriors import TooLarge, ngram_posteriors
    from smt_bridge.graphs.word_graph import word_graph

    counts = _Counts()
    for graph in graphs:
        words = word_graph(graph, features.scores(graph))
        try:
            found = ngram_posteriors(words, scale=args.scale, order=args.order)
        except TooLarge:
            problem = (
                f"the graph of sentence {graph.sentence} is too large for n-grams of {counted(args.order, 'word')}"
            )
            message = f"{problem}; make it smaller first with `smt-bridge graph prune --gap 1`"
            raise FormatError(args.graphs, message, line=graph.line) from None
        lines = _ngram_lines(graph.sentence, found, args.minimum)
        counts.add(graph, ngrams=len(lines), without=not found)
        yield b"".join(lines)
    counts.tell(args)


def _list_posteriors(args: argparse.Namespace) -> Iterator[bytes]:
    """The same by an n-best list."""
    from smt_bridge.graphs.posteriors import posteriors_of
    from smt_bridge.nbest.order import ordered_lists

    with ordered_lists(args.graphs) as lists:
        for found in lists.lists:
            posteriors = posteriors_of(found, path=args.graphs, scale=args.scale, order=args.order)
            yield b"".join(_ngram_lines(found.sentence, posteriors, args.minimum))


def _ngram_lines(sentence: int, posteriors: Mapping[Words, float], minimum: float) -> list[bytes]:
    kept = [(len(ngram), -p, ngram) for ngram, p in posteriors.items() if p >= minimum]
    return [b"%d ||| %b ||| %.6g\n" % (sentence, b" ".join(ngram), -p) for _, p, ngram in sorted(kept)]


def _searched(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    from smt_bridge.commands.graph_search import search_graphs

    counts = _Counts()
    for one in search_graphs(args, features, graphs):
        counts.add(one.graph, translations=len(one.lines), proved=int(one.proved), without=not one.lines)
        yield b"".join(one.lines)
    counts.tell(args)


class _Counts:
    """What is told on stderr in the end."""

    _NAMES: ClassVar = {
        "translations": "translations",
        "kept": "arcs kept",
        "references": "references inside",
        "ngrams": "n-grams",
        "proved": "proved best",
        "without": "without a translation",
    }

    def __init__(self) -> None:
        self._graphs = self._arcs = 0
        self._more: dict[str, int] = {}

    def add(self, graph: PhraseGraph, **more: int) -> None:
        """Count a graph."""
        self._graphs += 1
        self._arcs += graph.arcs
        for name, number in more.items():
            self._more[name] = self._more.get(name, 0) + number

    def tell(self, args: argparse.Namespace, behind: str = "") -> None:
        """Say it."""
        more = [f"{number:,} {self._NAMES[name]}" for name, number in self._more.items() if number or name != "without"]
        say(
            f"{NAME} {args.use}: "
            + ", ".join([counted(self._graphs, "graph"), counted(self._arcs, "arc"), *more])
            + behind
        )
