"""Sentences to translations: Moses and a neural model make lists, which are merged, scored and reranked.

Moses works in its own process while the neural model searches. The result for a sentence does not depend on the
sentences it is translated with, nor on how many are taken at a time.

Without tuned weights Moses' lists guide the neural search: the posteriors of each list's n-grams take part in ranking
the neural model's hypotheses (``nmt_core.inference.search.ngram_guidance``), so that Moses has to be done with a
sentence before its search begins.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from nmt_core.base.interfaces import NgramGuidance
from smt_bridge.graphs.posteriors import posteriors_of
from smt_bridge.graphs.search import GraphLists
from smt_bridge.hybrid.chooser import Choice, Chooser, Lists, as_read, lists_of, why_silent
from smt_bridge.moses.process import MosesLines, MosesProcess
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.recipe import MOSES, NEURAL, AdviceOptions


class NbestDecoder(Protocol):
    """Anything that translates tokenised sentences into lists, best first."""

    def nbest(self, sentences: Sequence[str]) -> list[list[str]]:
        """For every sentence the lines of its list, best first, ids counted from 0; none for a blank sentence."""
        ...


class WithMoses:
    """What may have a Moses."""

    def __init__(self, moses: MosesProcess | None) -> None:
        self._moses = moses

    @property
    def has_moses(self) -> bool:
        """Whether Moses takes part."""
        return self._moses is not None

    def without_moses(self) -> None:
        """Go on with the neural model alone."""
        self._moses = None


class HybridTranslator(WithMoses):
    """Moses and a neural model as one translator; ``moses`` None is the neural model with what features say.

    ``graphs`` makes the third lists, of the graphs that ``moses`` reads.
    """

    def __init__(
        self, moses: MosesProcess | None, neural: NbestDecoder, chooser: Chooser, graphs: GraphLists | None = None
    ) -> None:
        super().__init__(moses)
        self._neural, self._chooser, self._graphs = neural, chooser, graphs

    def translate(self, sentences: Sequence[str]) -> list[Choice]:
        """One choice per sentence, in their order; Moses gets bytes that are not UTF-8 (surrogates) as they are.

        Raises MosesFailed, WiringError.
        """
        texts = [as_read(sentence) for sentence in sentences]
        other = _InBackground(self._moses, as_bytes(sentences))
        try:
            neural = self._neural.nbest(texts)
            phrase_based = other.result()
        except BaseException:  # Ctrl-C above all: the answer of Moses is not needed any more
            other.stop()
            raise
        searched = self._search_graphs(texts, phrase_based)
        systems = zip(phrase_based, neural, searched, strict=True)
        groups = [lists_of(number, *lists) for number, lists in enumerate(systems)]
        return self._chooser.choose(texts, groups, [why_silent(answer) for answer in phrase_based])

    def _search_graphs(self, texts: Sequence[str], answers: Sequence[MosesLines | None]) -> list[list[bytes]]:
        if self._graphs is None:
            return [[] for _ in texts]
        return self._graphs.lists(
            texts, [answer.graph.graph if answer and answer.graph else None for answer in answers]
        )


def as_bytes(sentences: Sequence[str]) -> list[bytes]:
    """The sentences as Moses reads them: bytes that are not UTF-8 (surrogates) as they were."""
    return [sentence.encode("utf-8", "surrogateescape") for sentence in sentences]


class _InBackground:
    """Moses' answers, waited for in a thread."""

    def __init__(self, moses: MosesProcess | None, sentences: Sequence[bytes]) -> None:
        self._moses = moses
        self._found: list[MosesLines | None] = [None] * len(sentences)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(sentences,), daemon=True)
        self._thread.start()

    def _run(self, sentences: Sequence[bytes]) -> None:
        try:
            if self._moses is not None:
                self._found = self._moses.translate(sentences)
        except Exception as error:  # for the thread that waits
            self._error = error

    def stop(self) -> None:
        """End Moses, and with it the thread."""
        if self._moses is not None:
            self._moses.stop()
        self._thread.join()

    def result(self) -> list[MosesLines | None]:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found


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
