"""What Moses searched, as lists and n-gram posteriors: the work of `smt-bridge graph`."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import check_words
from nmt_core.files import open_output
from smt_bridge.errors import WiringError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import PhraseGraph, within_gap
from smt_bridge.graphs.reading import read_graphs, with_lines
from smt_bridge.graphs.search import FEATURE, WINDOW, Searcher, search_window
from smt_bridge.graphs.strings import best_strings, nbest_entry
from smt_bridge.models import Local, check_ours, searcher_of
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.entry import NbestEntry, format_entry
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.posteriors import posteriors_of

NAME = "graph"
_NEEDED = "needed"  # an option without default
_MOST_WORDS = 9  # of an n-gram
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "nbest": {"ini": _NEEDED, "weights": None, "nbest": 100},
    "list-posteriors": {"scale": 1.0, "order": 4, "minimum": 0.001},
    "search": {
        "ini": _NEEDED, "weights": None, "model": _NEEDED, "source": _NEEDED, "nbest": 1, "beam": 12, "gap": 1.0,
        "graph_weight": 1.0,
    },
}  # fmt: skip
"""The options of each use, and what they are where they are not given."""


def run(args: argparse.Namespace) -> int:
    """One graph after the other, each written before the next is read."""
    _set_defaults(args)
    _check(args)
    if args.use == "list-posteriors":
        _write(_list_posteriors(args))
        return 0
    features = GraphFeatures(args.ini, args.weights, besides=[FEATURE] if args.use == "search" else [])
    work = _lists if args.use == "nbest" else _searched
    _write(work(args, features, read_graphs(args.graphs, features)))
    return 0


def _write(parts: Iterable[bytes]) -> None:
    """Each part is written before the next is made."""
    with open_output("-") as stream:
        for part in parts:
            stream.write(part)
            stream.flush()


def _set_defaults(args: argparse.Namespace) -> None:
    """Raises ConfigError for an option of another use, and without one that this use needs."""
    own = _DEFAULTS[args.use]
    for name in sorted(set().union(*_DEFAULTS.values())):
        option = f"--{name.replace('_', '-')}"
        if getattr(args, name) is None:
            setattr(args, name, own.get(name))
        elif name not in own:
            raise ConfigError(f"{option} is not for `smt-bridge graph {args.use}`; --help says for which use it is")
        if getattr(args, name) is _NEEDED:
            raise ConfigError(f"`smt-bridge graph {args.use}` needs {option}")


def _check(args: argparse.Namespace) -> None:
    for name in ("gap", "scale", "minimum", "graph_weight"):
        value = getattr(args, name)
        if value is not None and not 0.0 <= value < float("inf"):
            raise ConfigError(f"--{name.replace('_', '-')} must be a number from 0 on")
    if args.order is not None and not 1 <= args.order <= _MOST_WORDS:
        raise ConfigError(f"--order must be from 1 to {_MOST_WORDS}")


def _lists(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    counts = _Counts()
    for graph in graphs:
        found = best_strings(graph, features.scores(graph), min(args.nbest, sys.maxsize))
        counts.add(graph, translations=len(found))
        yield _written(nbest_entry(graph, one, features) for one in found)
    counts.tell(args)


def _written(entries: Iterable[NbestEntry]) -> bytes:
    return b"".join(format_entry(entry) + b"\n" for entry in entries)


def _list_posteriors(args: argparse.Namespace) -> Iterator[bytes]:
    """``id ||| n-gram ||| probability``, shorter n-grams and likelier ones first."""
    with ordered_lists(args.graphs) as lists:
        for found in lists.lists:
            posteriors = posteriors_of(found, path=args.graphs, scale=args.scale, order=args.order)
            kept = [(len(ngram), -p, ngram) for ngram, p in posteriors.items() if p >= args.minimum]
            lines = (b"%d ||| %b ||| %.6g\n" % (found.sentence, b" ".join(words), -p) for _, p, words in sorted(kept))
            yield b"".join(lines)


def _searched(args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]) -> Iterator[bytes]:
    counts = _Counts()
    for graph, entries in _search_graphs(args, features, graphs):
        counts.add(graph, translations=len(entries))
        yield _written(entries)
    counts.tell(args)


def _search_graphs(
    args: argparse.Namespace, features: GraphFeatures, graphs: Iterable[PhraseGraph]
) -> Iterator[tuple[PhraseGraph, list[NbestEntry]]]:
    """The graphs in their order, and their lists, which are empty where Moses found no translation."""
    weight = _nmt_weight(args, features)
    check_ours(args.model)
    searcher: Searcher = searcher_of(Local(args.model).models, beam=args.beam, nbest=args.nbest)
    pairs = with_lines(graphs, args.source, path=args.graphs)
    pruned = ((line, within_gap(graph, features.scores(graph), args.gap)) for line, graph in pairs)
    sentences = ((_source(args, line, graph), graph) for line, graph in pruned)
    while window := list(itertools.islice(sentences, WINDOW)):
        lists = search_window(searcher, features, window, nmt_weight=weight, graph_weight=args.graph_weight)
        yield from zip((graph for _, graph in window), lists, strict=True)


def _nmt_weight(args: argparse.Namespace, features: GraphFeatures) -> float:
    """Raises ConfigError where it is not above 0, without which nothing would bound the search."""
    weight = float(features.others.get(FEATURE, (1.0,))[0])
    if not 0.0 < weight < float("inf"):
        problem = f"{args.weights}: {FEATURE} must be a number above 0"
        raise ConfigError(f"{problem}; without a neural model take `smt-bridge graph nbest`")
    return weight


def _source(args: argparse.Namespace, line: bytes, graph: PhraseGraph) -> str:
    text = text_of(line)
    if not text:
        problem = f"{args.graphs} has a graph of sentence {graph.sentence}, but that line of {args.source} has no words"
        raise WiringError(f"{problem}; give the text that Moses translated")
    check_words(text, args.max_words, path=args.source, line=graph.sentence + 1)
    return text


class _Counts:
    """The summary that goes to stderr at the end."""

    def __init__(self) -> None:
        self._graphs = self._arcs = self._translations = self._without = 0

    def add(self, graph: PhraseGraph, *, translations: int) -> None:
        """Count a graph."""
        self._graphs += 1
        self._arcs += graph.arcs
        self._translations += translations
        self._without += not translations

    def tell(self, args: argparse.Namespace) -> None:
        """Say it."""
        kinds = (("graph", self._graphs), ("arc", self._arcs), ("translation", self._translations))
        numbers = [counted(number, name) for name, number in kinds]
        numbers += [f"{self._without:,} without a translation"] if self._without else []
        say(f"{NAME} {args.use}: {', '.join(numbers)}")
