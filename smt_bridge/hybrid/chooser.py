"""The lists of several systems for a sentence as one list, scored, and the hypothesis that weights choose from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.base import Feature
from smt_bridge.moses.process import MosesLines
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.merge import Columns, ExactValue, layout, merged
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.nbest.recompute import exact_values
from smt_bridge.nbest.weighting import Reranker
from smt_bridge.recipe import GRAPH, MOSES, NEURAL, Recipe

GIVEN_UP, UNTRANSLATED = "given_up", "untranslated"
"""Why Moses has no list: it failed at the sentence twice, or has no translation of it; else what is wrong with it."""

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
        paths = {part.system: f"the {part.system} list of a sentence" for part in self.columns}
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
    sentence: int, moses: MosesLines | None, neural: list[NbestEntry], graph: list[NbestEntry] | None = None
) -> tuple[dict[str, NbestList], dict[str, str]]:
    """The lists of the sentence of this number, and why Moses, or its search graph, has none if it has none.

    ``moses`` is None where it failed twice.
    """
    phrase_based, problem = _entries_of(sentence, moses)
    lists = {MOSES: phrase_based, NEURAL: neural, GRAPH: graph or []}
    reasons = {MOSES: problem}
    if moses is not None and moses.graph is not None:
        reasons[GRAPH] = moses.graph.problem or "there is no complete translation in it"
    return {system: NbestList(sentence, found) for system, found in lists.items() if found}, reasons


def _entries_of(sentence: int, moses: MosesLines | None) -> tuple[list[NbestEntry], str]:
    """Moses' list, and why it is empty if it is: one that cannot be read costs no other sentence its list."""
    if moses is None:
        return [], GIVEN_UP
    lines = enumerate((b"%d ||| %s" % (sentence, line) for line in moses), start=1)
    try:
        return [parse_entry(line, path="Moses' list", number=number) for number, line in lines], UNTRANSLATED
    except FormatError as error:
        return [], str(error)


def as_read(sentence: str) -> str:
    """The sentence with bytes that are not UTF-8 replaced, as models and features read it."""
    return sentence.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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
