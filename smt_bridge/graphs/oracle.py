"""What a graph could give: of its strings one of those that are most like the reference.

The exact oracle for BLEU is NP-hard (Sokolov, Wisniewski and Yvon 2012, "Computing lattice BLEU oracle scores"). Here
hypotheses are followed through the graph word by word; those at one place that agree in their last three words, their
length and the n-grams of the reference they hold are one. At each place the best go on, by a sum over n-grams that is
linear in the matches (Tromble et al. 2008, equation 5); of what arrives at the end the one with the highest smoothed
sentence BLEU (Lin and Och 2004) is taken. With a beam that drops nothing this is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smt_bridge.graphs.phrase_graph import Words
from smt_bridge.graphs.word_graph import WordGraph
from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH, sentence_bleu

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

    ``beam`` hypotheses are followed at each place.
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
