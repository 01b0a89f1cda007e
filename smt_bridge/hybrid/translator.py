"""Sentences to translations: Moses and a neural model make lists, which are merged, scored and reranked.

Moses works in its own process while the neural model searches. The result for a sentence does not depend on the
sentences it is translated with, nor on how many are taken at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from smt_bridge.graphs.search import GraphLists
from smt_bridge.hybrid.chooser import Choice, Chooser, as_read, lists_of, why_silent
from smt_bridge.moses.process import MosesLines, MosesProcess


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
