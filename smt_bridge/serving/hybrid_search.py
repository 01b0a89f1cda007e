"""A hybrid as a search that sentences enter and leave: Moses and the neural search work side by side.

Where Moses advises the neural search, that of a sentence begins when its advice is there. A sentence leaves when both
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
from nmt_core.inference.output.finish import Searched, Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.jobs import Unfinished
from nmt_core.serving.engine.work import LARGE, StepDecoder
from nmt_core.serving.errors import unavailable
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Finish
from smt_bridge.graphs.search import GraphLists
from smt_bridge.hybrid.chooser import Choice, Chooser, lists_of, why_silent
from smt_bridge.hybrid.translator import GuidedChooser
from smt_bridge.models import SurfaceWords, nbest_lines
from smt_bridge.moses.process import MosesLines
from smt_bridge.recipe import GRAPH, MOSES
from smt_bridge.serving.moses_queue import REST, MosesQueue, Ticket

_LOOK_AGAIN = 0.003  # seconds
WITHOUT_GRAPH = "without_graph"
"""What sentences count as that have a list of Moses, but none of its search graph."""

_log = logging.getLogger(__name__)
_callers = itertools.count()


class Parts(NamedTuple):
    """What a hybrid is made of, on one device.

    ``config`` is how its neural search was tuned, ``scorer`` gives the numbers of what is answered; ``degrade`` says
    that the neural model answers alone where Moses cannot be used, ``degraded`` counts the sentences it had to.
    ``graphs`` makes lists of search graphs. With ``advise``, which makes advice of Moses' answer, the neural search of
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
    advise: Callable[[MosesLines | None], NgramGuidance | None] | None = None


@dataclass(eq=False)
class _Sentence:
    """One that is being translated; ``neural`` is the answer of the search, which may be an exception."""

    text: str
    nbest: int
    ticket: Ticket | None
    neural: Any = None

    @property
    def ready(self) -> bool:
        return self.neural is not None and (self.ticket is None or self.ticket.done)


class HybridSearch:
    """A ``StepDecoder`` whose answers are the best of the merged list of each sentence."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._search = parts, parts.search()
        self._caller = str(next(_callers))
        self._live: dict[int, _Sentence] = {}
        self._searching: set[int] = set()
        self._unadvised: dict[int, Ticket] = {}

    @property
    def tokens(self) -> float:
        """What the neural search has, and as much for what waits for Moses."""
        beam = self._parts.config.beam
        waiting = (one for key, one in self._live.items() if key not in self._searching)
        return self._search.tokens + sum(beam * (one.text.count(" ") + 2) for one in waiting)

    @property
    def waits(self) -> float:
        """Until Moses answers."""
        advised = any(ticket.done for ticket in self._unadvised.values())
        ready = self._searching or advised or any(one.ready for one in self._live.values())
        return 0.0 if ready else _LOOK_AGAIN

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences into both systems."""
        entering = []
        for key, item in requests:
            text = without_markup(item.text)
            ticket = self._parts.moses.ask(self._caller, text.encode("utf-8", "replace")) if split_words(text) else None
            self._live[key] = _Sentence(text, item.config.nbest, ticket)
            if ticket is None or self._parts.advise is None:
                entering.append((key, None))
            else:
                self._unadvised[key] = ticket
        self._enter(entering)

    def _enter(self, entering: Sequence[tuple[int, NgramGuidance | None]]) -> None:
        """Let sentences into the neural search."""
        parts = self._parts
        items = [
            (key, SearchItem(parts.words.read(self._live[key].text), parts.config, advice)) for key, advice in entering
        ]
        self._searching.update(key for key, _ in items)
        if items:
            self._search.admit(items)

    def _enter_advised(self) -> None:
        """Let in those that Moses has advice for, or will have none."""
        assert self._parts.advise is not None
        answered = {key: ticket for key, ticket in self._unadvised.items() if ticket.done}
        for key in answered:
            del self._unadvised[key]
        entering = []
        for key, ticket in answered.items():
            try:
                entering.append((key, self._parts.advise(ticket.lines)))
            except Exception as error:  # belongs to this sentence: the others go on
                self._live[key].neural = error
        self._enter(entering)

    def step(self) -> list[tuple[int, Any]]:
        """One step of the neural search; the sentences that both systems have translated are unfinished answers."""
        if self._unadvised:
            self._enter_advised()
        if self._searching:
            for key, found in self._search.step():
                self._live[key].neural = found
                self._searching.discard(key)
        ready = {key: one for key, one in self._live.items() if one.ready}
        for key in ready:
            del self._live[key]
        return [(key, self._answer(one)) for key, one in ready.items()]

    def _answer(self, sentence: _Sentence) -> Any:
        """The answer, or what there is to do for it: a sentence without words has that of the neural model."""
        if isinstance(sentence.neural, Exception) or sentence.ticket is None:
            return sentence.neural
        has_graph = self._parts.graphs is not None and sentence.ticket.graph is not None
        words = (sentence.text.count(" ") + 2) * self._parts.config.nbest
        return Unfinished(sentence, words + LARGE if has_graph else words)

    def cancel(self, keys: Sequence[int]) -> None:
        """Drop sentences; Moses goes on with those that it has already."""
        for key in keys:
            gone = self._live.pop(key, None)
            if gone is None:  # a step that was given up had begun to answer it
                continue
            self._unadvised.pop(key, None)
            if gone.ticket is not None:
                self._parts.moses.forget(gone.ticket)
        searching = [key for key in keys if key in self._searching]
        self._searching.difference_update(keys)
        self._search.cancel(searching)


class HybridFinish:
    """Completes what both systems have found, sentence by sentence. ``finish`` does so for the neural search."""

    def __init__(self, parts: Parts, finish: Finish | None) -> None:
        self._parts, self._finish = parts, finish

    def __call__(self, unfinished: Sequence[Any]) -> list[Any]:
        """The translations of every sentence, or why it has none."""
        return [self._answer(one) for one in unfinished]

    def _answer(self, one: _Sentence | Searched) -> Any:
        try:
            if not isinstance(one, _Sentence):
                return self._completed(one)
            assert one.ticket is not None
            return self._translations(one, one.ticket)
        except Exception as error:  # belongs to this sentence: the others go on
            return error

    def _completed(self, neural: Any) -> Any:
        """The answer of the neural search, which may be unfinished."""
        if not isinstance(neural, Unfinished | Searched):
            return neural
        assert self._finish is not None
        (found,) = self._finish([neural.item if isinstance(neural, Unfinished) else neural])
        if isinstance(found, Exception):
            raise found
        return found

    def _graph_list(self, sentence: _Sentence, ticket: Ticket) -> list[bytes]:
        """The list of its search graph, where there is one."""
        if self._parts.graphs is None or ticket.graph is None:
            return []
        return self._parts.graphs.lists([sentence.text], [ticket.graph])[0]

    def _translations(self, sentence: _Sentence, ticket: Ticket) -> Any:
        """The best of the merged list, or why there are none."""
        parts = self._parts
        if ticket.error is not None and not parts.degrade:
            problem = f"{parts.moses.options.program} cannot be used now; the neural model alone can"
            return unavailable(problem, reason="MOSES_FAILED", retry_after=REST)
        graph, neural = self._graph_list(sentence, ticket), self._completed(sentence.neural)
        lists = lists_of(0, ticket.lines, nbest_lines(0, neural, parts.words.write), graph)
        choice = parts.chooser.choose([sentence.text], [lists], [why_silent(ticket.lines)])[0]
        degraded = MOSES in choice.silent
        if degraded:
            parts.degraded["failed" if ticket.error is not None else choice.silent[MOSES]] += 1
        elif GRAPH in choice.silent:
            if not parts.degraded[WITHOUT_GRAPH]:
                problem = "a sentence has no list of its search graph; such sentences are counted: %s"
                _log.warning(problem, choice.silent[GRAPH])
            parts.degraded[WITHOUT_GRAPH] += 1
        return list(self._shown(sentence, choice, degraded=degraded))

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
