"""Sentences to translations without tuned weights: Moses' lists are advice of the neural search.

The posteriors of each list's n-grams take part in ranking the neural model's hypotheses
(``nmt_core.inference.advice``), so that Moses has to be done with a sentence before its search begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from nmt_core.interfaces import NgramAdvice
from smt_bridge.decoder.chooser import MOSES, NEURAL, Choice, Lists, as_read, lists_of, why_silent
from smt_bridge.decoder.hybrid import WithMoses, as_bytes
from smt_bridge.decoder.moses_process import MosesProcess
from smt_bridge.graphs.ngram_posteriors import posteriors_of

_MINIMUM = 0.001  # less likely n-grams are left out, as `smt-bridge graph list-posteriors` does


class AdviceOptions(NamedTuple):
    """``weight`` and ``factors`` are those of the search; a hypothesis of a list weighs exp(``scale`` · total)."""

    weight: float
    factors: tuple[float, ...]
    scale: float


class AdvisedDecoder(Protocol):
    """Anything that translates tokenised sentences into lists, best first, with advice."""

    def nbest(self, sentences: Sequence[str], advice: Sequence[NgramAdvice | None]) -> list[list[str]]:
        """For every sentence the lines of its list, best first, ids counted from 0; none for a blank sentence."""
        ...


class AdvisedTranslator(WithMoses):
    """A neural model that Moses advises; ``moses`` None is the model alone."""

    def __init__(self, moses: MosesProcess | None, neural: AdvisedDecoder, options: AdviceOptions) -> None:
        super().__init__(moses)
        self._neural, self._options = neural, options

    def translate(self, sentences: Sequence[str]) -> list[Choice]:
        """The neural model's list of each sentence and its best, as ``HybridTranslator``. Raises MosesFailed."""
        texts, answers = [as_read(sentence) for sentence in sentences], [None for _ in sentences]
        found = answers if self._moses is None else self._moses.translate(as_bytes(sentences))
        asked = [lists_of(number, lines, []) for number, lines in enumerate(found)]
        lists = self._neural.nbest(texts, list(map(self._advice, asked)))
        return [
            _choice(lists_of(number, None, lines), advice, why_silent(answer))
            for number, (lines, advice, answer) in enumerate(zip(lists, asked, found, strict=True))
        ]

    def _advice(self, lists: Lists) -> NgramAdvice | None:
        if MOSES not in lists:
            return None
        weight, factors, scale = self._options
        found = posteriors_of(lists[MOSES], path="Moses' list", scale=scale, order=len(factors))
        posteriors = {
            tuple(word.decode("utf-8", "replace") for word in ngram): posterior
            for ngram, posterior in found.items()
            if posterior >= _MINIMUM
        }
        return NgramAdvice(posteriors, weight, factors)


def _choice(own: Lists, advice: Lists, reasons: Mapping[str, str]) -> Choice:
    if NEURAL not in own:
        return Choice([], None, {})
    entries = own[NEURAL].entries
    return Choice(entries, entries[0], {} if MOSES in advice else {MOSES: reasons[MOSES]})
