"""Sentences to translations: Moses and a neural model make lists, which are merged, scored and reranked.

Moses works in its own process while the neural model searches. The result for a sentence does not depend on the
sentences it is translated with, nor on how many are taken at a time.

Without tuned weights Moses' lists guide the neural search: the posteriors of each list's n-grams take part in ranking
the neural model's hypotheses (``nmt_core.inference.search.ngram_guidance``), so that Moses has to be done with a
sentence before its search begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from nmt_core.base.interfaces import NgramGuidance
from smt_bridge.graphs.search import GraphLists
from smt_bridge.hybrid.chooser import Choice, Chooser, Lists, as_read, lists_of
from smt_bridge.moses.process import MosesLines, MosesProcess
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.posteriors import posteriors_of
from smt_bridge.recipe import MOSES, NEURAL, GuidanceOptions

_MINIMUM = 0.001  # less likely n-grams are left out, as `smt-bridge graph list-posteriors` does


class NbestDecoder(Protocol):
    """Anything that translates tokenised sentences into lists, best first, perhaps with guidance."""

    def nbest(self, sentences: Sequence[str], guidance: Sequence[NgramGuidance | None] = ()) -> list[list[NbestEntry]]:
        """For every sentence its list, best first, ids counted from 0; none for a blank sentence."""
        ...


class GuidedChooser:
    """What ``Chooser`` is where Moses has guided the search already: the neural model's list is the answer."""

    def choose(
        self, sentences: Sequence[str], groups: Sequence[Lists], reasons: Sequence[Mapping[str, str]]
    ) -> list[Choice]:
        """One choice per sentence, given the lists of both, and why Moses has none."""
        return [self._choice(*one) for one in zip(groups, reasons, strict=True)]

    @staticmethod
    def _choice(lists: Lists, reasons: Mapping[str, str]) -> Choice:
        if NEURAL not in lists:
            return Choice([], None, {})
        entries = lists[NEURAL].entries
        return Choice(entries, entries[0], {} if MOSES in lists else {MOSES: reasons[MOSES]})

    def order(self, choice: Choice) -> list[tuple[float, NbestEntry]]:
        """The list with its totals, best first."""
        return [(entry.total or 0.0, entry) for entry in choice.entries]

    def systems(self, entry: NbestEntry) -> tuple[str, ...]:
        """The systems that listed a hypothesis."""
        return (NEURAL,)


def guidance_of(lists: Lists, options: GuidanceOptions) -> NgramGuidance | None:
    """The guidance by Moses' list; None without one."""
    if MOSES not in lists:
        return None
    found = posteriors_of(lists[MOSES], path="Moses' list", scale=options.scale, order=len(options.factors))
    posteriors = {
        tuple(word.decode("utf-8", "replace") for word in ngram): posterior
        for ngram, posterior in found.items()
        if posterior >= _MINIMUM
    }
    return NgramGuidance(posteriors, options.weight, options.factors)


class HybridTranslator:
    """Moses and a neural model as one translator; ``moses`` None is the neural model with what features say.

    ``graphs`` makes the third lists, of the graphs that ``moses`` reads. With ``guidance`` Moses' lists guide the
    neural search instead of being merged.
    """

    def __init__(
        self,
        moses: MosesProcess | None,
        neural: NbestDecoder,
        chooser: Chooser | GuidedChooser,
        graphs: GraphLists | None = None,
        guidance: GuidanceOptions | None = None,
    ) -> None:
        self.moses = moses
        self._neural, self._chooser, self._graphs, self._guidance = neural, chooser, graphs, guidance

    def translate(self, sentences: Sequence[str]) -> list[Choice]:
        """One choice per sentence, in their order; Moses gets bytes that are not UTF-8 (surrogates) as they are.

        Raises MosesFailed, WiringError.
        """
        texts = [as_read(sentence) for sentence in sentences]
        for_moses = [sentence.encode("utf-8", "surrogateescape") for sentence in sentences]
        if self._guidance is None:
            phrase_based, neural = self._both(for_moses, texts)
        else:
            phrase_based = self.moses.translate(for_moses) if self.moses else [None for _ in sentences]
            lists = [lists_of(number, lines, []) for number, lines in enumerate(phrase_based)]
            neural = self._neural.nbest(texts, [guidance_of(one, self._guidance) for one, _ in lists])
        systems = zip(phrase_based, neural, self._search_graphs(texts, phrase_based), strict=True)
        found = [lists_of(number, *lists) for number, lists in enumerate(systems)]
        return self._chooser.choose(texts, [lists for lists, _ in found], [reasons for _, reasons in found])

    def _both(
        self, for_moses: Sequence[bytes], texts: Sequence[str]
    ) -> tuple[Sequence[MosesLines | None], list[list[NbestEntry]]]:
        """The lists of both at the same time."""
        if self.moses is None:
            return [None for _ in texts], self._neural.nbest(texts)
        with ThreadPoolExecutor(1) as background:
            phrase_based = background.submit(self.moses.translate, for_moses)
            try:
                neural = self._neural.nbest(texts)
                return phrase_based.result(), neural
            except BaseException:  # Ctrl-C above all: the answer of Moses is not needed any more
                self.moses.stop()
                raise

    def _search_graphs(self, texts: Sequence[str], answers: Sequence[MosesLines | None]) -> list[list[NbestEntry]]:
        if self._graphs is None:
            return [[] for _ in texts]
        return self._graphs.lists(
            texts, [answer.graph.graph if answer and answer.graph else None for answer in answers]
        )
