"""A hybrid as a search that sentences enter and leave: Moses and the neural search work side by side.

Where Moses guides the neural search, a sentence's search begins when its guidance is there. A sentence leaves when both
have translated it. A second job does the rest (``finish``): its search graph, where there are lists of such, is
searched, then lists are merged, scored and put in order. While only Moses works there is nothing for a step to do, and
the device is others'.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt_core.base.interfaces import NgramGuidance, PairScorer, SentencePair
from nmt_core.base.words import split_words, without_markup
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.requests import Finished
from nmt_core.serving.engine.work import LARGE, StepDecoder, Unfinished
from nmt_core.serving.errors import unavailable
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Finish
from smt_bridge.graphs.phrase_graph import PhraseGraph
from smt_bridge.graphs.search import GraphLists
from smt_bridge.hybrid.chooser import GIVEN_UP, UNTRANSLATED, Choice, Chooser, lists_of
from smt_bridge.hybrid.translator import GuidedChooser
from smt_bridge.models import SurfaceWords, nbest_entries
from smt_bridge.moses.process import MosesLines
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.recipe import GRAPH, MOSES
from smt_bridge.serving.moses_queue import REST, MosesQueue, Ticket

_LOOK_AGAIN = 0.003  # seconds
_UNREADABLE = "unreadable"
REASONS = ("failed", GIVEN_UP, UNTRANSLATED, _UNREADABLE)
"""Why a sentence was translated without Moses."""
WITHOUT_GRAPH = "without_graph"
"""What sentences count as that have a list of Moses, but none of its search graph."""

_log = logging.getLogger(__name__)
_callers = itertools.count()


class Parts(NamedTuple):
    """What a hybrid is made of, on one device.

    ``config`` is how its neural search was tuned, ``scorer`` gives the numbers of what is answered; ``degrade`` says
    that the neural model answers alone where Moses cannot be used, ``degraded`` counts the sentences it had to.
    ``graphs`` makes lists of search graphs. With ``guide``, which makes guidance of Moses' answer, the neural search of
    a sentence waits for that.
    """

    search: Callable[[], StepDecoder]
    config: DecodingConfig
    scorer: PairScorer
    words: SurfaceWords
    chooser: Chooser | GuidedChooser
    moses: MosesQueue
    degrade: bool
    degraded: Counter[str]
    graphs: GraphLists | None = None
    guide: Callable[[MosesLines | None], NgramGuidance | None] | None = None


@dataclass(eq=False)
class _Sentence:
    """One that is being translated; ``neural`` is the answer of the search it has entered, or an exception."""

    text: str
    nbest: int
    ticket: Ticket | None
    entered: bool = False
    neural: Any = None

    @property
    def words(self) -> int:
        """Those of the text and its end."""
        return self.text.count(" ") + 2

    @property
    def has_answer(self) -> bool:
        """Moses has answered, or is not asked."""
        return self.ticket is None or self.ticket.answer.done()

    @property
    def searching(self) -> bool:
        return self.entered and self.neural is None

    @property
    def ready(self) -> bool:
        return self.neural is not None and self.has_answer

    @property
    def error(self) -> BaseException | None:
        """Why Moses could not be used."""
        return self.ticket.answer.exception() if self.ticket else None

    @property
    def lines(self) -> MosesLines | None:
        """Moses' list, if it has one."""
        return self.ticket.answer.result() if self.ticket and not self.error else None

    @property
    def graph(self) -> PhraseGraph | None:
        """The search graph, where it was read."""
        lines = self.lines
        return lines.graph.graph if lines and lines.graph else None


class HybridSearch:
    """A ``StepDecoder`` whose answers are the best of the merged list of each sentence."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._search = parts, parts.search()
        self._caller = str(next(_callers))
        self._live: dict[int, _Sentence] = {}

    @property
    def tokens(self) -> float:
        """What the neural search has, and as much for what waits for Moses."""
        waiting = sum(one.words for one in self._live.values() if not one.searching)
        return self._search.tokens + self._parts.config.beam * waiting

    @property
    def waits(self) -> float:
        """Until Moses answers, or a Transformer."""
        if any(one.ready or self._may_enter(one) for one in self._live.values()):
            return 0.0
        return self._search.waits if any(one.searching for one in self._live.values()) else _LOOK_AGAIN

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Ask Moses for sentences, which enter the neural search with the next step or with Moses' guidance."""
        for key, item in requests:
            text = without_markup(item.text)
            ticket = self._parts.moses.ask(self._caller, text.encode("utf-8", "replace")) if split_words(text) else None
            self._live[key] = _Sentence(text, item.config.nbest, ticket)

    def _may_enter(self, sentence: _Sentence) -> bool:
        return not sentence.entered and (self._parts.guide is None or sentence.has_answer)

    def _enter(self) -> None:
        """Let sentences into the neural search."""
        parts, items = self._parts, list[tuple[int, SearchItem]]()
        for key, one in self._live.items():
            if self._may_enter(one):
                one.entered = True
                try:
                    guidance = parts.guide(one.lines) if parts.guide and one.ticket else None
                    items.append((key, SearchItem(parts.words.read(one.text), parts.config, guidance)))
                except Exception as error:  # belongs to this sentence: the others go on
                    one.neural = error
        if items:
            self._search.admit(items)

    def step(self) -> list[tuple[int, Any]]:
        """One step of the neural search; the sentences that both systems have translated are unfinished answers."""
        self._enter()
        if any(one.searching for one in self._live.values()):
            for key, found in self._search.step():
                self._live[key].neural = found
        ready = [key for key, one in self._live.items() if one.ready]
        return [(key, self._answer(self._live.pop(key))) for key in ready]

    def _answer(self, sentence: _Sentence) -> Any:
        """The answer, or what there is to do for it: a sentence without words has that of the neural model."""
        if isinstance(sentence.neural, Exception) or sentence.ticket is None:
            return sentence.neural
        has_graph = self._parts.graphs is not None and sentence.graph is not None
        work = sentence.words * self._parts.config.nbest
        return Unfinished(sentence, work + LARGE if has_graph else work)

    def cancel(self, keys: Sequence[int]) -> None:
        """Drop sentences; Moses goes on with those that it has already."""
        gone = {key: self._live.pop(key) for key in keys if key in self._live}
        for one in gone.values():
            if one.ticket is not None:
                self._parts.moses.forget(one.ticket)
        self._search.cancel([key for key, one in gone.items() if one.searching])


class HybridFinish:
    """Completes what both systems have found, sentence by sentence. ``finish`` does so for the neural search."""

    def __init__(self, parts: Parts, finish: Finish | None) -> None:
        self._parts, self._finish = parts, finish

    def __call__(self, unfinished: Sequence[Any]) -> list[Any]:
        """The translations of every sentence, or why it has none."""
        return [self._answer(one) for one in unfinished]

    def _answer(self, one: _Sentence | Finished[int]) -> Any:
        try:
            return self._translations(one) if isinstance(one, _Sentence) else self._completed(one)
        except Exception as error:  # belongs to this sentence: the others go on
            return error

    def _completed(self, neural: Any) -> Any:
        """The answer of the neural search, which may be unfinished."""
        if not isinstance(neural, Unfinished | Finished):
            return neural
        assert self._finish is not None
        (found,) = self._finish([neural.value if isinstance(neural, Unfinished) else neural])
        if isinstance(found, Exception):
            raise found
        return found

    def _translations(self, sentence: _Sentence) -> Any:
        """The best of the merged list, or why there are none."""
        parts = self._parts
        if sentence.error is not None and not parts.degrade:
            problem = f"{parts.moses.options.program} cannot be used now; the neural model alone can"
            return unavailable(problem, reason="MOSES_FAILED", retry_after=REST)
        graph: list[NbestEntry] = []
        if parts.graphs is not None and sentence.graph is not None:
            graph = parts.graphs.lists([sentence.text], [sentence.graph])[0]
        neural = self._completed(sentence.neural)
        lists, reasons = lists_of(0, sentence.lines, nbest_entries(0, neural, parts.words.write), graph)
        choice = parts.chooser.choose([sentence.text], [lists], [reasons])[0]
        if MOSES in choice.silent:
            reason = "failed" if sentence.error is not None else choice.silent[MOSES]
            if reason not in REASONS:
                if not parts.degraded[_UNREADABLE]:
                    _log.warning("a sentence has no list of Moses; such sentences are counted: %s", reason)
                reason = _UNREADABLE
            parts.degraded[reason] += 1
        elif GRAPH in choice.silent:
            if not parts.degraded[WITHOUT_GRAPH]:
                problem = "a sentence has no list of its search graph; such sentences are counted: %s"
                _log.warning(problem, choice.silent[GRAPH])
            parts.degraded[WITHOUT_GRAPH] += 1
        return list(self._shown(sentence, choice, degraded=MOSES in choice.silent))

    def _shown(self, sentence: _Sentence, choice: Choice, *, degraded: bool) -> Iterator[Translation]:
        """As many as were asked for, with the neural model's numbers."""
        ordered = self._parts.chooser.order(choice)[: sentence.nbest]
        pairs = [SentencePair(sentence.text, entry.text) for _, entry in ordered]
        scores = self._parts.scorer.score(pairs, per_word=True)
        for (total, entry), score in zip(ordered, scores, strict=True):
            words = tuple(entry.text.split(" ")) if entry.text else ()
            source, numbers = tuple(split_words(sentence.text)), tuple(score.word_log_probs or ())
            systems = self._parts.chooser.systems(entry)
            yield Translation(
                entry.text, words, score.log_prob, total, numbers, source, systems=systems, degraded=degraded
            )
