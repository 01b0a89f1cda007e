"""From a recipe to what it names: features, what chooses by its weights, and how its Moses is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nmt_core.base.interfaces import PairScorer
from smt_bridge.features import registry as catalogue
from smt_bridge.features.interface import Feature
from smt_bridge.features.source_factor import for_factored_sources
from smt_bridge.graphs.features import read_graph_features
from smt_bridge.graphs.search import GraphLists, GraphReader, Searcher
from smt_bridge.hybrid.chooser import Chooser
from smt_bridge.moses.command_line import MosesOptions
from smt_bridge.nbest.recompute import exact_values
from smt_bridge.recipe import GraphSearch, Recipe, check_signatures


def open_features(recipe: Recipe, open_scorer: Callable[[str], PairScorer]) -> list[Feature]:
    """The features that have weights, with their scorers; beside models of source factors those of words alone.

    Without weights, all of them. Raises ConfigError for one that the weights were not tuned with, and as
    ``catalogue.open_feature``.
    """
    scorers = catalogue.SharedScorers(open_scorer)
    features = catalogue.numbered([catalogue.open_feature(spec, scorers) for spec in recipe.features])
    check_signatures(recipe, signatures_of(features))
    features = [feature for feature in features if recipe.weights is None or _counts(feature, recipe.weights)]
    for_words, factors = for_factored_sources(features, 0)
    return for_words if factors else features


def _counts(feature: Feature, weights: Mapping[str, Sequence[float]]) -> bool:
    return any(any(weights.get(name, ())) for name in feature.names)


def signatures_of(features: Sequence[Feature]) -> dict[str, str]:
    """What each column depends on."""
    return {name: feature.signature for feature in features for name in feature.names}


def moses_of(recipe: Recipe, *, program: str, threads: int, timeout: float) -> MosesOptions:
    """How the recipe's Moses is started; ``timeout`` is in seconds, for one sentence."""
    return MosesOptions(
        program=program,
        ini=recipe.moses_ini,
        nbest=recipe.moses_nbest,
        threads=threads,
        factor=recipe.moses_factor,
        timeout=timeout,
        more=recipe.moses_options,
    )


def graph_reader_of(recipe: Recipe) -> GraphReader | None:
    """What reads the search graphs of its Moses, where these are searched; raises as ``read_graph_features``."""
    return None if recipe.graph is None else GraphReader(read_graph_features(recipe.moses_ini), recipe.graph.gap)


def graph_lists_of(recipe: Recipe, open_searcher: Callable[[GraphSearch], Searcher]) -> GraphLists | None:
    """What searches in them; raises as ``read_graph_features``, and as ``open_searcher``."""
    if recipe.graph is None:
        return None
    return GraphLists(read_graph_features(recipe.moses_ini), open_searcher(recipe.graph))


def open_chooser(recipe: Recipe, features: Sequence[Feature]) -> Chooser:
    """What merges, scores and chooses as the recipe says; raises as ``exact_values``.

    ``features`` are those of ``open_features``: columns of others, whose weights are all 0, are not in the lists.
    """
    there = {name for feature in features for name in feature.names}
    absent = recipe.signatures.keys() - there
    weights = None if recipe.weights is None else {n: w for n, w in recipe.weights.items() if n not in absent}
    return Chooser(
        features,
        columns=recipe.columns,
        systems=recipe.systems,
        fill=recipe.fill,
        exact=lambda columns: exact_values(recipe.exact, columns),
        weights=weights,
    )
