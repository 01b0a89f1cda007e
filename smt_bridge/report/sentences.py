"""The sentences that the page about a reranking is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import sub
from typing import NamedTuple

import numpy as np

from nmt_core.base.words import MOST_WORDS
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import BLEU
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.order import fill_gaps
from smt_bridge.nbest.rerank import Choice, Reranker, choice_of
from smt_bridge.tuning.pro import sentence_scores

_EMPTY = NbestEntry(0, b"", {}, None, 0, (), -1, -1)  # what a sentence without a list is judged as


class Sentence(NamedTuple):
    """One sentence: source and reference, what was chosen, and the BLEU counts of all entries of its list.

    Where there is no list, the counts are those of empty output.
    """

    number: int
    source: str
    reference: str
    choice: Choice
    counts: Counts

    @property
    def chosen(self) -> int:
        """The place of the chosen entry, from 0."""
        return max(0, self.choice.place - 1)

    @property
    def before(self) -> NbestEntry:
        """The first entry of a sentence that has a list."""
        assert self.choice.before is not None
        return self.choice.before

    @property
    def after(self) -> NbestEntry:
        """The chosen entry of a sentence that has a list."""
        assert self.choice.after is not None
        return self.choice.after

    @property
    def gain(self) -> float:
        """How much sentence BLEU (with one added to the counts) changed."""
        scores = sentence_scores(self.counts[[0, self.chosen]].astype(np.float64), BLEU)
        return float(scores[1] - scores[0])


def collect(
    lists: Iterable[NbestList],
    reranker: Reranker,
    sources: Sequence[str],
    reference: Sequence[str],
    count: Callable[[NbestList], Counts],
    plain: Callable[[str], str] | None = None,
    *,
    most_words: int = MOST_WORDS,
) -> list[Sentence]:
    """Choose from every list and count every entry; sentences without a list count as empty output.

    Raises InputError where a judged entry has more than ``most_words``.
    """
    found = []
    for group in fill_gaps(lists, len(sources)):
        best = reranker.best(group) if group.entries else None
        choice = choice_of(group, best, reranker, plain, most_words=most_words)
        counts = count(group if group.entries else NbestList(group.sentence, [_EMPTY]))
        found.append(Sentence(group.sentence, sources[group.sentence], reference[group.sentence], choice, counts))
    return found


def differences(one: Sentence) -> dict[str, tuple[float, ...]]:
    """Every feature's values in the chosen entry less those in the first; a sparse one is 0 where it is missing."""
    after, before = one.after.features, one.before.features
    found = {}
    for name in dict.fromkeys((*after, *before)):
        zeros = (0.0,) * len(after.get(name) or before[name])
        found[name] = tuple(map(sub, after.get(name, zeros), before.get(name, zeros)))
    return found
