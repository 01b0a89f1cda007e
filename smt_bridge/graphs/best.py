"""The best distinct strings of a graph, each with its best derivation, exactly.

Best-first search over prefixes of strings. What a prefix can still reach is known from the backward scores, so that
each prefix that is followed is one of a string that is found (k-best strings of weighted automata; Mohri and Riley
2002). The string of a graph that is most like a reference is at the end of the file.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph, Words, gap_of, gaps, potentials
from smt_bridge.graphs.word_graph import Arcs, WordGraph, word_graph
from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH, sentence_bleu
from smt_bridge.nbest.entry import NbestEntry, rounded


class Derivation(NamedTuple):
    """A string, the score of its best derivation and the arcs of that."""

    words: Words
    score: float
    arcs: Arcs


class Reached(NamedTuple):
    """The best way to a place (or to the end) by the words so far."""

    score: float
    before: Reached | None
    arcs: Arcs

    def derivation(self, graph: PhraseGraph) -> Derivation:
        """All of the way, through the phrase graph that the graph of words was made of."""
        parts: list[Arcs] = []
        reached: Reached | None = self
        while reached is not None:
            parts.append(reached.arcs)
            reached = reached.before
        arcs = tuple(arc for part in reversed(parts) for arc in part)
        return Derivation(tuple(word for arc in arcs for word in graph.words(arc)), self.score, arcs)


Prefix = dict[int, Reached]
"""The places that a prefix leads to."""

BEGINNING: Prefix = {0: Reached(0.0, None, ())}


def followed(words: WordGraph, prefix: Prefix) -> dict[int, Prefix]:
    """What each next word, by its number in the vocabulary, leads to."""
    found: dict[int, Prefix] = {}
    for place, before in prefix.items():
        for word, target, score, arcs in words.steps[place]:
            score += before.score
            active = found.setdefault(word, {})
            known = active.get(target)
            if known is None or score > known.score:
                active[target] = Reached(score, before, arcs)
    return found


def ended(words: WordGraph, prefix: Prefix) -> Reached | None:
    """The best end of the prefix itself, if it is a whole string."""
    found: Reached | None = None
    for place, before in prefix.items():
        for end in words.ends[place]:
            score = before.score + end.score
            if found is None or score > found.score:
                found = Reached(score, before, end.arcs)
    return found


def nbest_entry(
    graph: PhraseGraph,
    derivation: Derivation,
    features: GraphFeatures,
    *,
    more: Mapping[str, float] = MappingProxyType({}),
    total: float | None = None,
) -> NbestEntry:
    """The derivation as an entry of a list: features are the sums over the arcs, and ``more``.

    The total is the derivation's score unless given.
    """
    values_D = graph.features_ED[list(derivation.arcs)].sum(axis=0)
    sparse: dict[str, float] = {}
    for arc in derivation.arcs:
        for name, value in graph.sparse.get(arc, {}).items():
            sparse[name] = sparse.get(name, 0.0) + value
    shown = features.shown(values_D, sparse) | {name: (value,) for name, value in more.items()}
    score = rounded(derivation.score if total is None else total)
    return NbestEntry(graph.sentence, b" ".join(derivation.words), shown, score, 0)


_FEWEST_ARCS = 200
_GROWTH = 4


def best_strings(graph: PhraseGraph, scores_E: Floats, count: int) -> list[Derivation]:
    """The ``count`` distinct strings with the highest scores, best first; all where there are fewer.

    A part of the graph is searched first: strings within its gap have their best derivations in it, so that these are
    exactly those of the whole graph. Where they are too few, a larger part is searched.
    """
    gaps_E = gaps(graph, scores_E)
    size = max(_FEWEST_ARCS, count)
    while True:
        gap = gap_of(gaps_E, size)
        kept = np.flatnonzero(gaps_E <= gap) if gap < inf else np.flatnonzero(gaps_E < inf)
        part = graph.with_arcs(kept)
        found = list(itertools.islice(_search(part, scores_E[kept], gap), count))
        if len(found) == count or gap == inf:
            return [one._replace(arcs=tuple(kept[list(one.arcs)].tolist())) for one in found]
        size *= _GROWTH


def _search(graph: PhraseGraph, scores_E: Floats, gap: float) -> Iterator[Derivation]:
    """The strings that are at most ``gap`` worse than the best, best first."""
    exact = potentials(graph, scores_E)
    if exact.whole == -inf:
        return
    words = word_graph(graph, scores_E)
    backward = exact.backward_N[words.nodes].tolist()
    least = exact.whole - gap
    tie = itertools.count()
    queue: list[tuple[float, int, Prefix | Reached]] = [(-exact.whole, next(tie), BEGINNING)]
    while queue:
        _, _, reached = heapq.heappop(queue)
        if isinstance(reached, Reached):
            yield reached.derivation(graph)
            continue
        for active in followed(words, reached).values():
            bound = max(one.score + backward[place] for place, one in active.items())
            if bound >= least:
                heapq.heappush(queue, (-bound, next(tie), active))
        end = ended(words, reached)
        if end is not None and end.score >= least:
            heapq.heappush(queue, (-end.score, next(tie), end))


_PRECISION, _DECAY = 0.85, 0.72  # of unigrams, and from one order to the next (Tromble et al. 2008, section 6)
_GAINS = tuple(1.0 / (ORDER * _PRECISION * _DECAY**order) for order in range(ORDER))
_MOST_COUNTED = 255


class _Hypothesis(NamedTuple):
    """A string so far: ``gain`` ranks it, ``score`` is the decoder's, ``held`` counts n-grams of the reference."""

    gain: float
    score: float
    history: tuple[int, ...]
    length: int
    held: bytes
    matches: tuple[int, ...]
    before: _Hypothesis | None


class _Reference:
    """The n-grams of a reference, and what a further word adds to a hypothesis."""

    def __init__(self, words: Sequence[bytes], vocabulary: Sequence[bytes]) -> None:
        numbers = {word: number for number, word in enumerate(vocabulary)}
        known = [numbers.get(word, -1 - place) for place, word in enumerate(words)]
        counts = Counter(
            tuple(known[begin : begin + order])
            for order in range(1, ORDER + 1)
            for begin in range(len(known) - order + 1)
        )
        self.length = len(words)
        self._limits = [min(count, _MOST_COUNTED) for count in counts.values()]
        self._places = {ngram: place for place, ngram in enumerate(counts)}
        self.first = _Hypothesis(0.0, 0.0, (), 0, bytes(len(counts)), (0,) * ORDER, None)

    def longer(self, before: _Hypothesis, word: int, score: float) -> _Hypothesis:
        """The hypothesis with one more word."""
        gain, held, matches = before.gain - 1.0, before.held, before.matches
        context = (*before.history, word)
        for order in range(min(ORDER, len(context))):
            place = self._places.get(context[len(context) - 1 - order :])
            if place is None:
                break  # no longer n-gram that ends so is in the reference either
            if held[place] < self._limits[place]:
                gain += _GAINS[order]
                held = b"%b%c%b" % (held[:place], held[place] + 1, held[place + 1 :])
                matches = (*matches[:order], matches[order] + 1, *matches[order + 1 :])
        history = context[-(ORDER - 1) :]
        return _Hypothesis(gain, before.score + score, history, before.length + 1, held, matches, before)


def oracle_string(graph: WordGraph, reference: Sequence[bytes], beam: int) -> Words | None:
    """A string of the graph that is like ``reference``, and it itself where it is there; None without any string.

    The exact oracle for BLEU is NP-hard (Sokolov, Wisniewski and Yvon 2012, "Computing lattice BLEU oracle scores").
    Here hypotheses are followed word by word; those at one place that agree in their last three words, their length
    and the n-grams of the reference they hold are one. At each place the best ``beam`` go on, by a sum over n-grams
    that is linear in the matches (Tromble et al. 2008, equation 5); of what arrives at the end the one with the highest
    smoothed sentence BLEU (Lin and Och 2004) is taken. With a beam that drops nothing this is exact.
    """
    if graph.accepts(reference):
        return tuple(reference)
    judge = _Reference(reference, graph.vocabulary)
    waiting: list[dict[object, _Hypothesis]] = [{} for _ in graph.steps]
    waiting[0][()] = judge.first
    complete: list[_Hypothesis] = []
    for place, steps in enumerate(graph.steps):
        followed = sorted(waiting[place].values(), key=lambda one: (-one.gain, -one.score))[:beam]
        waiting[place].clear()
        for end in graph.ends[place]:
            complete += [one._replace(score=one.score + end.score) for one in followed]
        for step in steps:
            there = waiting[step.target]
            for one in followed:
                longer = judge.longer(one, step.word, step.score)
                key = (longer.history, longer.length, longer.held)
                known = there.get(key)
                if known is None or longer.score > known.score:
                    there[key] = longer
    if not complete:
        return None
    return _words(graph, _best(complete, judge.length))


def _best(complete: Sequence[_Hypothesis], reference_length: int) -> _Hypothesis:
    """The one with the highest sentence BLEU, of equals the decoder's best."""
    rows = np.zeros((len(complete), COLUMNS), np.int64)
    for row, one in zip(rows, complete, strict=True):
        row[:ORDER] = one.matches
        row[ORDER : 2 * ORDER] = [max(0, one.length - order) for order in range(ORDER)]
        row[SYSTEM_LENGTH], row[REFERENCE_LENGTH] = one.length, reference_length
    scores = sentence_bleu(rows).tolist()
    return max(zip(scores, complete, strict=True), key=lambda pair: (pair[0], pair[1].score))[1]


def _words(graph: WordGraph, last: _Hypothesis) -> Words:
    words: list[bytes] = []
    one: _Hypothesis | None = last
    while one is not None and one.before is not None:
        words.append(graph.vocabulary[one.history[-1]])
        one = one.before
    return tuple(reversed(words))
