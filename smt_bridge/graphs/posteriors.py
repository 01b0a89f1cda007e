r"""How likely n-grams are to be in a translation, as a decoder's graph or n-best list has it.

p(u) is the share of derivations that hold the n-gram u at least once, a derivation weighing exp(scale · total)
(Tromble et al. 2008, section 3; Blackwood, de Gispert and Byrne 2010). Places of the graph are split by the words
before them, so that every step is of one n-gram of each order. Where no derivation can hold u twice, p(u) is the sum of
the posteriors of the steps that end it; for the others, 1 - Z_u / Z with Z_u the weight of the derivations without u.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, log1p
from typing import NamedTuple

import numpy as np

from smt_bridge.errors import FormatError
from smt_bridge.graphs.phrase_graph import Words
from smt_bridge.graphs.word_graph import WordGraph
from smt_bridge.moses_lines import split_tokens
from smt_bridge.nbest.entry import NbestList

ORDER = 4
BEGIN, END = b"<s>", b"</s>"
MOST_STEPS = 300_000  # of the split graph
_AT_ONCE = 256  # n-grams of one pass


class TooLarge(Exception):
    """A graph would have more than ``MOST_STEPS`` steps."""


class _Split(NamedTuple):
    """Steps between states, none before one that ends where it begins. State 0 is the beginning, state 1 the end.

    ``ngrams`` are those that end with a step, ``places`` those of the states in the graph.
    """

    begins: list[int]
    ends: list[int]
    scores: list[float]
    ngrams: list[tuple[Words, ...]]
    places: list[int]


def ngram_posteriors(graph: WordGraph, *, scale: float = 1.0, order: int = ORDER) -> dict[Words, float]:
    """p(u) of all n-grams up to ``order`` words, ``<s>`` and ``</s>`` among them; none where there is no translation.

    Scores are multiplied with ``scale``. Raises TooLarge.
    """
    split = _split(graph, scale, order)
    states = len(split.places)
    chances = _chances(split, states)
    steps: dict[Words, list[int]] = {}
    for step, ngrams in enumerate(split.ngrams):
        if chances[step]:
            for ngram in ngrams:
                steps.setdefault(ngram, []).append(step)
    forward = _masses(split, states, chances)
    found = {
        ngram: min(1.0, sum(forward[split.begins[step]] * chances[step] for step in own))
        for ngram, own in steps.items()
    }
    repeated = _repeated(graph, split, steps)
    for begin in range(0, len(repeated), _AT_ONCE):
        part = {ngram: steps[ngram] for ngram in repeated[begin : begin + _AT_ONCE]}
        found.update(_at_least_once(split, states, chances, part))
    return found


def posteriors_of(found: NbestList, *, path: str, scale: float = 1.0, order: int = ORDER) -> dict[Words, float]:
    """p(u) of all n-grams up to ``order`` words: the share of the hypotheses that hold u, each exp(scale · total).

    Raises FormatError, naming ``path`` and the line, for a hypothesis without a total.
    """
    totals = []
    for entry in found.entries:
        if entry.total is None:
            problem = "has no total, which posteriors are made of; expected id ||| words ||| features ||| total"
            raise FormatError(path, problem, line=entry.line)
        totals.append(entry.total)
    best = max(totals, default=0.0)
    weights = [exp(scale * (total - best)) for total in totals]
    shares: dict[Words, list[float]] = {}
    for entry, weight in zip(found.entries, weights, strict=True):
        for ngram in _ngrams((BEGIN, *split_tokens(entry.hypothesis), END), order):
            shares.setdefault(ngram, []).append(weight)
    whole = fsum(weights)
    return {ngram: min(1.0, fsum(own) / whole) for ngram, own in shares.items()}


def _split(graph: WordGraph, scale: float, order: int) -> _Split:
    """Places split by the words before them."""
    size = order - 1
    waiting: list[dict[Words, int]] = [{} for _ in graph.steps]
    waiting[0][(BEGIN,)[:size]] = 0
    split = _Split([], [], [], [], [0, len(graph.steps) - 1])
    for place, steps in enumerate(graph.steps):
        for history, state in waiting[place].items():
            for step in steps:
                context = (*history, graph.vocabulary[step.word])
                there, behind = waiting[step.target], context[max(0, len(context) - size) :]
                if behind not in there:
                    there[behind] = len(split.places)
                    split.places.append(step.target)
                _add(split, state, there[behind], scale * step.score, context)
            for end in graph.ends[place]:
                _add(split, state, 1, scale * end.score, (*history, END))
        waiting[place].clear()
        if len(split.begins) > MOST_STEPS:
            raise TooLarge
    return split


def _add(split: _Split, begin: int, end: int, score: float, context: Words) -> None:
    split.begins.append(begin)
    split.ends.append(end)
    split.scores.append(score)
    split.ngrams.append(tuple(context[place:] for place in range(len(context))))


def _chances(split: _Split, states: int) -> list[float]:
    """The share of each step among what can follow its beginning; the products along derivations are their shares."""
    backward = [-inf] * states
    backward[1] = 0.0
    steps = list(zip(split.begins, split.ends, split.scores, strict=True))
    for begin, end, score in reversed(steps):
        backward[begin] = _add_logs(backward[begin], score + backward[end])
    return [
        exp(score + backward[end] - backward[begin]) if backward[end] > -inf else 0.0 for begin, end, score in steps
    ]


def _add_logs(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    if first < second:
        first, second = second, first
    return first if second == -inf else first + log1p(exp(second - first))


def _masses(split: _Split, states: int, chances: Sequence[float]) -> list[float]:
    """The share of the derivations that reach each state."""
    masses = [0.0] * states
    masses[0] = 1.0
    for begin, end, chance in zip(split.begins, split.ends, chances, strict=True):
        masses[end] += masses[begin] * chance
    return masses


def _repeated(graph: WordGraph, split: _Split, steps: Mapping[Words, Sequence[int]]) -> list[Words]:
    """The n-grams of which one step can be reached from another, as far as places tell: some may be held twice."""
    reached = [1 << place for place in range(len(graph.steps))]  # from each place, as bits
    for place in range(len(graph.steps) - 1, -1, -1):
        for _, target, _, _ in graph.steps[place]:
            reached[place] |= reached[target]
    found = []
    for ngram, own in steps.items():
        begins = 0
        for step in own if len(own) > 1 else ():
            begins |= 1 << split.places[split.begins[step]]
        if begins and any(reached[split.places[split.ends[step]]] & begins for step in own if split.ends[step] > 1):
            found.append(ngram)
    return found


def _at_least_once(
    split: _Split, states: int, chances: Sequence[float], steps: Mapping[Words, Sequence[int]]
) -> dict[Words, float]:
    """1 less the share of the derivations without any step of the n-gram, of all n-grams (U) together."""
    blocked: dict[int, list[int]] = {}
    for column, own in enumerate(steps.values()):
        for step in own:
            blocked.setdefault(step, []).append(column)
    masses_SU = np.zeros((states, len(steps)))
    masses_SU[0] = 1.0
    for step, (begin, end, chance) in enumerate(zip(split.begins, split.ends, chances, strict=True)):
        mass_U = masses_SU[begin] * chance
        if step in blocked:
            mass_U[blocked[step]] = 0.0
        masses_SU[end] += mass_U
    return {ngram: min(1.0, max(0.0, 1.0 - mass)) for ngram, mass in zip(steps, masses_SU[1].tolist(), strict=True)}


def _ngrams(words: Words, order: int) -> set[Words]:
    """Those of a whole sentence, but for its beginning alone."""
    return {words[max(0, end - size) : end] for end in range(2, len(words) + 1) for size in range(1, order + 1)}
