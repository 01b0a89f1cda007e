"""Sentences to translations without tuned weights: Moses' lists are advice of the neural search.

The posteriors of each list's n-grams take part in ranking the neural model's hypotheses
(``nmt_core.inference.search.ngram_guidance``), so that Moses has to be done with a sentence before its search begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nmt_core.base.interfaces import NgramGuidance
from smt_bridge.graphs.posteriors import posteriors_of
from smt_bridge.hybrid.chooser import Choice, Lists, as_read, lists_of, why_silent
from smt_bridge.hybrid.translator import WithMoses, as_bytes
from smt_bridge.moses.process import MosesProcess
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.recipe import MOSES, NEURAL, AdviceOptions

_MINIMUM = 0.001  # less likely n-grams are left out, as `smt-bridge graph list-posteriors` does


class AdvisedDecoder(Protocol):
    """Anything that translates tokenised sentences into lists, best first, with advice."""

    def nbest(self, sentences: Sequence[str], advice: Sequence[NgramGuidance | None]) -> list[list[str]]:
        """For every sentence the lines of its list, best first, ids counted from 0; none for a blank sentence."""
        ...


class Adviser:
    """From lists of Moses to advice."""

    def __init__(self, options: AdviceOptions) -> None:
        self._options = options

    def advice(self, lists: Lists) -> NgramGuidance | None:
        """None without a list of Moses."""
        if MOSES not in lists:
            return None
        how = self._options
        found = posteriors_of(lists[MOSES], path="Moses' list", scale=how.scale, order=len(how.factors))
        posteriors = {
            tuple(word.decode("utf-8", "replace") for word in ngram): posterior
            for ngram, posterior in found.items()
            if posterior >= _MINIMUM
        }
        return NgramGuidance(posteriors, how.weight, how.factors)


class AdvisedChooser:
    """What ``Chooser`` is where Moses has given advice already: the neural model's list is the answer."""

    def choose(
        self, sentences: Sequence[str], groups: Sequence[Lists], reasons: Sequence[Mapping[str, str]]
    ) -> list[Choice]:
        """One choice per sentence, given the lists of both, and why Moses has none."""
        return list(map(_choice, groups, reasons))

    def order(self, choice: Choice) -> list[tuple[float, NbestEntry]]:
        """The list with its totals, best first."""
        return [(entry.total or 0.0, entry) for entry in choice.entries]

    def systems(self, entry: NbestEntry) -> tuple[str, ...]:
        """The systems that listed a hypothesis."""
        return (NEURAL,)


def _choice(lists: Lists, reasons: Mapping[str, str]) -> Choice:
    if NEURAL not in lists:
        return Choice([], None, {})
    entries = lists[NEURAL].entries
    return Choice(entries, entries[0], {} if MOSES in lists else {MOSES: reasons[MOSES]})


class AdvisedTranslator(WithMoses):
    """A neural model that Moses advises; ``moses`` None is the model alone."""

    def __init__(self, moses: MosesProcess | None, neural: AdvisedDecoder, options: AdviceOptions) -> None:
        super().__init__(moses)
        self._neural, self._adviser = neural, Adviser(options)

    def translate(self, sentences: Sequence[str]) -> list[Choice]:
        """The neural model's list of each sentence and its best, as ``HybridTranslator``. Raises MosesFailed."""
        texts, answers = [as_read(sentence) for sentence in sentences], [None for _ in sentences]
        found = answers if self._moses is None else self._moses.translate(as_bytes(sentences))
        asked = [self._adviser.advice(lists_of(number, lines, [])) for number, lines in enumerate(found)]
        both = zip(found, self._neural.nbest(texts, asked), strict=True)
        groups = [lists_of(number, *lists) for number, lists in enumerate(both)]
        return AdvisedChooser().choose(texts, groups, list(map(why_silent, found)))
