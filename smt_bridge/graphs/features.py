"""The features of search graphs: which there are and how much they count, as ``moses.ini`` says.

A graph has the features that n-best lists do not show too (``UnknownWordPenalty0``, and what is not tuneable): all are
part of a hypothesis' total.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from nmt_core.base.messages import counted
from smt_bridge.errors import WiringError
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph
from smt_bridge.moses.feature_functions import FeatureFunction
from smt_bridge.moses.ini import read_ini
from smt_bridge.moses.weights import Weights, all_weights, read_weights
from smt_bridge.nbest.entry import rounded


class DenseFeature(NamedTuple):
    """A feature whose components are the columns from ``begin`` on; ``shown`` are those that n-best lists show."""

    name: str
    begin: int
    weights: tuple[float, ...]
    shown: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its components: its own, or with their numbers from 1."""
        size = len(self.weights)
        return (self.name,) if size == 1 else tuple(f"{self.name}_{number}" for number in range(1, size + 1))


class GraphFeatures:
    """The D columns of a decoder's graphs, in its order, with the weights of its ``moses.ini`` (``path``).

    ``weights`` is a file of other weights to rank with, which may lack those of features that no list shows; ``others``
    are its weights called as in ``besides``, of features that the decoder does not have. Raises FormatError for
    malformed files, WiringError for those that do not go together.
    """

    def __init__(self, ini: str, weights: str | None = None, *, besides: Collection[str] = ()) -> None:
        read = read_ini(ini)
        if not read.features:
            problem = "has no [feature] section; give the moses.ini of the decoder that wrote the graphs"
            raise WiringError(f"{ini}: {problem}")
        self.path = ini
        given = all_weights(read.lines, path=ini)
        dense = _dense(read.features, given, ini)
        self.labels = tuple(label for feature in dense for label in feature.labels)
        self.decoder_weights_D = _vector(dense)
        names = {feature.name for feature in read.features}
        self.decoder_sparse = self._sparse = {name: one[0] for name, one in given.items() if name not in names}
        self.others: Weights = {}
        if weights is not None:
            chosen = read_weights(weights)
            self.others = {name: chosen[name] for name in besides if name in chosen}
            chosen = {name: values for name, values in chosen.items() if name not in besides}
            dense = _chosen(dense, chosen, weights)
            self._sparse = {name: one[0] for name, one in chosen.items() if name not in names}
        self.weights_D = _vector(dense)
        self._dense = tuple(dense)

    def scores(self, graph: PhraseGraph) -> Floats:
        """The weighted sum of each arc's features (E,)."""
        return totals(graph, self.weights_D, self._sparse)

    def shown(self, values_D: Floats, sparse: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
        """The features of a derivation as an n-best list has them."""
        dense = {
            feature.name: tuple(rounded(values_D[feature.begin + place]) for place in feature.shown)
            for feature in self._dense
            if feature.shown
        }
        return dense | {name: (rounded(sparse[name]),) for name in sorted(sparse)}


def totals(graph: PhraseGraph, weights_D: Floats, sparse: Mapping[str, float]) -> Floats:
    """The weighted sum of each arc's features (E,); sparse features without a weight count nothing."""
    scores: Floats = graph.features_ED @ weights_D
    for arc, values in graph.sparse.items():
        scores[arc] += sum(sparse.get(name, 0.0) * value for name, value in values.items())
    return scores


def _dense(features: tuple[FeatureFunction, ...], weights: Weights, path: str) -> list[DenseFeature]:
    """The features with a fixed number of scores, in the decoder's order."""
    found: list[DenseFeature] = []
    begin = 0
    for feature in features:
        values = weights.get(feature.name, ())
        if not values and feature.scores == 0:
            continue
        if not values:
            problem = "has no weights, and only Moses knows how many scores it has; add as many weights (Moses takes 1)"
            raise WiringError(f"{path}: the feature {feature.name} {problem}")
        if feature.scores not in (None, len(values)):
            has = f"has {counted(feature.scores or 0, 'score')} but {counted(len(values), 'weight')}"
            raise WiringError(f"{path}: the feature {feature.name} {has}; Moses would stop here")
        shown = feature.listed(range(len(values)))
        found.append(DenseFeature(feature.name, begin, values, tuple(int(place) for place in shown)))
        begin += len(values)
    return found


def _chosen(dense: list[DenseFeature], weights: Weights, path: str) -> list[DenseFeature]:
    """The same with other weights, which are those of lists or of all components."""
    known = {feature.name for feature in dense}
    for name, values in weights.items():
        if any(values) and name not in known and "_" not in name:
            raise WiringError(
                f"{path}: {name} is no feature of the decoder, so that its weight cannot count in a graph; leave it out"
            )
    return [_with_weights(feature, weights.get(feature.name), path) for feature in dense]


def _with_weights(feature: DenseFeature, weights: tuple[float, ...] | None, path: str) -> DenseFeature:
    size, shown = len(feature.weights), len(feature.shown)
    if weights is None and not shown:
        return feature
    if weights is None or len(weights) not in (size, shown):
        has = "no weight" if weights is None else counted(len(weights), "weight")
        raise WiringError(f"{path}: {has} for {feature.name}, which has {counted(shown, 'value')} in n-best lists")
    if len(weights) == size:
        return feature._replace(weights=weights)
    values = list(feature.weights)
    for place, weight in zip(feature.shown, weights, strict=True):
        values[place] = weight
    return feature._replace(weights=tuple(values))


def _vector(dense: list[DenseFeature]) -> Floats:
    return np.array([weight for feature in dense for weight in feature.weights])
