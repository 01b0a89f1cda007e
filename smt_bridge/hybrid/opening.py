"""From a recipe to what it names: features with their scorers, how Moses is started, what reads and searches graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nmt_core.base.interfaces import PairScorer
from smt_bridge.features.base import Feature, for_factored_sources, signatures_of
from smt_bridge.features.registry import SharedScorers, numbered, open_feature
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.search import GraphLists, GraphReader
from smt_bridge.models import searcher_of
from smt_bridge.moses.process import MosesOptions
from smt_bridge.nbest.merge import Columns
from smt_bridge.nbest.recompute import exact_signatures
from smt_bridge.recipe import NEURAL, Recipe, check_signatures


def open_features(recipe: Recipe, open_scorer: Callable[[str], PairScorer]) -> list[Feature]:
    """The features that have weights, with their scorers; beside models of source factors the ones of words alone.

    Without weights, all of them. Raises ConfigError for a model that the weights were not tuned with, and as
    ``open_feature``.
    """
    scorers = SharedScorers(open_scorer)
    features = numbered([open_feature(spec, scorers) for spec in recipe.features])
    check_signatures(recipe, column_signatures(recipe, recipe.columns, features, open_scorer(recipe.model)))
    features = [feature for feature in features if recipe.weights is None or _counts(feature, recipe.weights)]
    for_words, factors = for_factored_sources(features, 0)
    return for_words if factors else features


def column_signatures(
    recipe: Recipe, columns: Iterable[Columns], features: Sequence[Feature], model: PairScorer
) -> dict[str, str]:
    """What columns of merged lists depend on: features, exact ones, and the totals of the neural ``model``."""
    totals = {part.total: model.signature for part in columns if part.system == NEURAL}
    return totals | exact_signatures(recipe.exact) | signatures_of(features)


def _counts(feature: Feature, weights: Mapping[str, Sequence[float]]) -> bool:
    return any(any(weights.get(name, ())) for name in feature.names)


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
    """What reads the search graphs of its Moses, where these are searched; raises as ``GraphFeatures``."""
    return None if recipe.graph is None else GraphReader(GraphFeatures(recipe.moses_ini), recipe.graph.gap)


def graph_lists_of(recipe: Recipe, models: Sequence[Any]) -> GraphLists | None:
    """What searches in them with its loaded ``models``; raises as ``GraphFeatures``, and as ``searcher_of``."""
    if recipe.graph is None:
        return None
    searcher = searcher_of(models, beam=recipe.graph.beam, nbest=recipe.graph.nbest)
    return GraphLists(GraphFeatures(recipe.moses_ini), searcher)
