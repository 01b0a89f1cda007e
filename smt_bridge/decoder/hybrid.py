"""Sentences to translations: Moses and a neural model make lists, which are merged, scored and reranked.

Moses works in its own process while the neural model searches. The result for a sentence does not depend on the
sentences it is translated with, nor on how many are taken at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from nmt_core.errors import NmtError
from smt_bridge.decoder.moses_process import MosesProcess
from smt_bridge.errors import WiringError
from smt_bridge.features.annotate import annotate
from smt_bridge.features.interface import Feature
from smt_bridge.formats.nbest import NbestEntry, NbestList, parse_entry
from smt_bridge.merging import Columns, ExactValue, Fill, Merger, layout
from smt_bridge.reranking import Reranker

MOSES, NEURAL = "moses", "nmt"


class NbestDecoder(Protocol):
    """Anything that translates tokenised sentences into lists, best first."""

    def nbest(self, sentences: Sequence[str]) -> list[list[str]]:
        """For every sentence the lines of its list, best first, ids counted from 0; none for a blank sentence."""
        ...


class Choice(NamedTuple):
    """The merged list of a sentence, the hypothesis that was chosen from it, and the systems that listed none.

    ``best`` is None, and the list empty, for a blank sentence.
    """

    entries: list[NbestEntry]
    best: NbestEntry | None
    silent: tuple[str, ...]


class HybridTranslator:
    """Moses and a neural model as one translator; ``moses`` None is the neural model with what features say.

    ``columns`` are those of the merged lists; None: as the first sentences have them, so that both systems must
    translate one of these. ``exact`` gives the functions for columns that can be computed. Without ``weights`` the
    first hypothesis of the list is chosen, which is Moses' own choice.
    """

    def __init__(
        self,
        moses: MosesProcess | None,
        neural: NbestDecoder,
        features: Sequence[Feature],
        *,
        columns: Sequence[Columns] | None = None,
        fill: Fill = "last",
        exact: Callable[[Sequence[Columns]], Mapping[str, ExactValue]] = lambda columns: {},
        weights: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self._moses, self._neural, self._features = moses, neural, features
        self._fill, self._exact = fill, exact
        self._merger: Merger | None = None
        self.columns: tuple[Columns, ...] = ()
        if columns:
            self._know(columns)
        self._reranker = None if weights is None else _reranker(weights)

    def without_moses(self) -> None:
        """Go on with the neural model alone."""
        self._moses = None

    def _know(self, columns: Sequence[Columns]) -> Merger:
        self.columns = tuple(columns)
        paths = {part.system: f"the {part.system} list" for part in columns}
        self._merger = Merger(columns, paths, fill=self._fill, exact=self._exact(columns))
        return self._merger

    def translate(self, sentences: Sequence[str]) -> list[Choice]:
        """One choice per sentence, in their order; Moses gets bytes that are not UTF-8 (surrogates) as they are.

        Raises MosesFailed, WiringError.
        """
        groups = self._lists(sentences)
        merger = self._merger or self._know(_layout(groups))
        entries = [
            parse_entry(line.rstrip(b"\n"), path="the merged list", number=sentence + 1)
            for sentence, found in enumerate(groups)
            for line in merger.merge(sentence, found)
        ]
        merged: list[list[NbestEntry]] = [[] for _ in sentences]
        texts = [_text(sentence) for sentence in sentences]
        for entry in annotate(entries, self._features, texts, path="the merged list", window=len(sentences)):
            merged[entry.sentence].append(entry)
        return [self._choice(rows, found) for rows, found in zip(merged, groups, strict=True)]

    def _choice(self, entries: list[NbestEntry], groups: Mapping[str, NbestList]) -> Choice:
        silent = tuple(part.system for part in self.columns if entries and part.system not in groups)
        if not entries or self._reranker is None:
            return Choice(entries, entries[0] if entries else None, silent)
        return Choice(entries, self._reranker.best(NbestList(entries[0].sentence, entries)), silent)

    def _lists(self, sentences: Sequence[str]) -> list[dict[str, NbestList]]:
        """Both systems' lists, made side by side."""
        other = _InBackground(self._moses, [sentence.encode("utf-8", "surrogateescape") for sentence in sentences])
        try:
            neural = self._neural.nbest([_text(sentence) for sentence in sentences])
            phrase_based = other.result()
        except BaseException:  # Ctrl-C above all: nobody waits for Moses any more
            other.stop()
            raise
        groups: list[dict[str, NbestList]] = [{} for _ in sentences]
        for sentence, (first, second) in enumerate(zip(phrase_based, neural, strict=True)):
            numbered = [b"%d ||| %s" % (sentence, line) for line in first or []]
            for system, lines in ((MOSES, numbered), (NEURAL, [line.encode() for line in second])):
                if lines:
                    groups[sentence][system] = _list_of(sentence, lines, system)
        return groups


class _InBackground:
    """Moses' answers, waited for in a thread."""

    def __init__(self, moses: MosesProcess | None, sentences: Sequence[bytes]) -> None:
        self._moses = moses
        self._found: list[list[bytes] | None] = [None] * len(sentences)
        self._error: NmtError | None = None
        self._thread = threading.Thread(target=self._run, args=(sentences,), daemon=True)
        self._thread.start()

    def _run(self, sentences: Sequence[bytes]) -> None:
        try:
            if self._moses is not None:
                self._found = self._moses.translate(sentences)
        except NmtError as error:
            self._error = error

    def stop(self) -> None:
        """End Moses, and with it the thread."""
        if self._moses is not None:
            self._moses.stop()
        self._thread.join()

    def result(self) -> list[list[bytes] | None]:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found


def _text(sentence: str) -> str:
    """The sentence with bytes that are not UTF-8 replaced, as models and features read it."""
    return sentence.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _list_of(sentence: int, lines: Sequence[bytes], system: str) -> NbestList:
    path = f"the {system} list of sentence {sentence + 1}"
    return NbestList(sentence, [parse_entry(line, path=path, number=number) for number, line in enumerate(lines, 1)])


def _layout(groups: Sequence[Mapping[str, NbestList]]) -> tuple[Columns, ...]:
    """The columns as the first lists of each system have them."""
    firsts = {}
    for system in (MOSES, NEURAL):
        found = next((group[system].entries[0] for group in groups if system in group), None)
        if found is not None:
            firsts[system] = found
    if len(firsts) < 2:
        missing = " and ".join(system for system in (MOSES, NEURAL) if system not in firsts)
        raise WiringError(
            f"no list of {missing} in the first {len(groups)} sentences, so its columns are not known; give text that"
            " it can translate, or a recipe"
        )
    return layout(list(firsts.items()))


def _reranker(weights: Mapping[str, Sequence[float]]) -> Reranker:
    return Reranker(weights, path="the merged list", weights_path="the recipe")
