"""The lists of several systems for a sentence as one list, scored, and the hypothesis that weights choose from it.

At the end of the file: from a recipe to what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from nmt_core.base.interfaces import PairScorer
from nmt_core.base.messages import counted
from smt_bridge.errors import WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.base import Feature, for_factored_sources, signatures_of
from smt_bridge.features.registry import SharedScorers, numbered, open_feature
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.search import GraphLists, GraphReader, Searcher
from smt_bridge.moses.process import MosesLines, MosesOptions
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.merge import Columns, ExactValue, layout, merged
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.nbest.recompute import exact_values
from smt_bridge.nbest.rerank import Reranker
from smt_bridge.recipe import GRAPH, MOSES, NEURAL, GraphSearch, Recipe, check_signatures

GIVEN_UP, UNTRANSLATED = "given_up", "untranslated"
"""Why Moses has no list: it failed at the sentence twice, or has no translation of it."""

Lists = Mapping[str, NbestList]
"""The list of each system that has one for a sentence."""


class Choice(NamedTuple):
    """The merged list of a sentence, the hypothesis that was chosen from it, and which systems listed none, and why.

    ``best`` is None, and the list empty, for a blank sentence. Why is "" where nothing is known.
    """

    entries: list[NbestEntry]
    best: NbestEntry | None
    silent: Mapping[str, str]


class Chooser:
    """Merges, scores and chooses as a recipe says; raises as ``exact_values``.

    ``features`` come from ``open_features``: columns of others, whose weights are all 0, are not in the lists.
    Without columns in the recipe they are as the first sentences with lists have them, so that each system must
    translate one of these. Without weights the first hypothesis of the list is chosen, which is Moses' own choice.
    """

    def __init__(self, recipe: Recipe, features: Sequence[Feature]) -> None:
        self._recipe, self._features = recipe, features
        self.columns: tuple[Columns, ...] = ()
        self._functions: Mapping[str, ExactValue] = {}
        if recipe.columns:
            self._know(recipe.columns)
        self._reranker = None
        if recipe.weights is not None:
            self._reranker = Reranker(recipe.weights, path="the merged list", weights_path="the recipe")

    def _know(self, columns: Sequence[Columns]) -> None:
        self.columns, self._functions = tuple(columns), exact_values(self._recipe.exact, columns)

    def choose(
        self, sentences: Sequence[str], groups: Sequence[Lists], reasons: Sequence[Mapping[str, str]]
    ) -> list[Choice]:
        """One choice per sentence, given its lists, and why systems have none. Raises WiringError."""
        if not any(groups):  # blank sentences, of which no columns can be learnt and none are needed
            return [Choice([], None, {}) for _ in sentences]
        if not self.columns:
            self._know(_layout(groups, self._recipe.systems))
        entries = [entry for sentence, found in enumerate(groups) for entry in self._merged(sentence, found)]
        lists: list[list[NbestEntry]] = [[] for _ in sentences]
        for entry in annotate(entries, self._features, sentences, path="the merged list", window=len(sentences)):
            lists[entry.sentence].append(entry)
        return [self._choice(*one) for one in zip(lists, groups, reasons, strict=True)]

    def _merged(self, sentence: int, groups: Lists) -> list[NbestEntry]:
        paths = {part.system: _path_of(part.system, sentence) for part in self.columns}
        return merged(sentence, groups, self.columns, paths=paths, exact=self._functions)

    def _choice(self, entries: list[NbestEntry], groups: Lists, reasons: Mapping[str, str]) -> Choice:
        missing = [part.system for part in self.columns if entries and part.system not in groups]
        silent = {system: reasons.get(system, "") for system in missing}
        if not entries or self._reranker is None:
            return Choice(entries, entries[0] if entries else None, silent)
        return Choice(entries, self._reranker.best(entries), silent)

    def order(self, choice: Choice) -> list[tuple[float, NbestEntry]]:
        """The list with its totals, best first; needs weights."""
        assert self._reranker is not None
        return self._reranker.order(choice.entries)

    def systems(self, entry: NbestEntry) -> tuple[str, ...]:
        """The systems that listed a hypothesis."""
        return tuple(part.system for part in self.columns if entry.features[part.own[0]] == (1.0,))


def lists_of(
    sentence: int, moses: Sequence[bytes] | None, neural: list[NbestEntry], graph: list[NbestEntry] | None = None
) -> dict[str, NbestList]:
    """The lists of the sentence of this number; ``moses`` are lines without their ids."""
    lines = enumerate((b"%d ||| %s" % (sentence, line) for line in moses or []), start=1)
    path = _path_of(MOSES, sentence)
    phrase_based = [parse_entry(line, path=path, number=number) for number, line in lines]
    lists = {MOSES: phrase_based, NEURAL: neural, GRAPH: graph or []}
    return {system: NbestList(sentence, found) for system, found in lists.items() if found}


def why_silent(answer: MosesLines | None) -> dict[str, str]:
    """Why the systems that Moses' answer, None where it failed twice, makes lists for have none of a sentence."""
    if answer is None:
        return {MOSES: GIVEN_UP}
    graph = "" if answer.graph is None else answer.graph.problem or "there is no complete translation in it"
    return {MOSES: UNTRANSLATED, GRAPH: graph}


def as_read(sentence: str) -> str:
    """The sentence with bytes that are not UTF-8 replaced, as models and features read it."""
    return sentence.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _path_of(system: str, sentence: int) -> str:
    """What a list is called in errors."""
    return f"the {system} list of sentence {sentence + 1}"


def _layout(groups: Sequence[Lists], systems: Sequence[str]) -> tuple[Columns, ...]:
    """The columns as the first lists of each system have them."""
    firsts = {}
    for system in systems:
        found = next((group[system].entries[0] for group in groups if system in group), None)
        if found is not None:
            firsts[system] = found
    if len(firsts) < len(systems):
        missing = " and ".join(system for system in systems if system not in firsts)
        raise WiringError(
            f"no list of {missing} in the first {counted(len(groups), 'sentence')}, so its columns are not known; give"
            " text that it can translate, or a recipe"
        )
    return layout(firsts)


def open_features(recipe: Recipe, open_scorer: Callable[[str], PairScorer]) -> list[Feature]:
    """The features that have weights, with their scorers; beside models of source factors those of words alone.

    Without weights, all of them. Raises ConfigError for a model that the weights were not tuned with, and as
    ``open_feature``.
    """
    scorers = SharedScorers(open_scorer)
    features = numbered([open_feature(spec, scorers) for spec in recipe.features])
    check_signatures(recipe, column_signatures(recipe.columns, features, open_scorer(recipe.model)))
    features = [feature for feature in features if recipe.weights is None or _counts(feature, recipe.weights)]
    for_words, factors = for_factored_sources(features, 0)
    return for_words if factors else features


def column_signatures(columns: Iterable[Columns], features: Sequence[Feature], model: PairScorer) -> dict[str, str]:
    """What columns of merged lists depend on: those of features, and the totals of the neural ``model``."""
    totals = {part.total: model.signature for part in columns if part.system == NEURAL}
    return totals | signatures_of(features)


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


def graph_lists_of(recipe: Recipe, open_searcher: Callable[[GraphSearch], Searcher]) -> GraphLists | None:
    """What searches in them; raises as ``GraphFeatures``, and as ``open_searcher``."""
    if recipe.graph is None:
        return None
    return GraphLists(GraphFeatures(recipe.moses_ini), open_searcher(recipe.graph))
