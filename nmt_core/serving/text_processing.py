"""What is done with the texts of requests beside the event loop, so that others are answered meanwhile."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from nmt_core.base.errors import ConfigError
from nmt_core.serving.call import messages_size
from nmt_core.serving.checks import source_problem, text_problem
from nmt_core.serving.errors import Refusal, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.devices import Place
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.worker_thread import WorkerThread

_PIECE = 0.005  # seconds in the thread, after which another request may have it
_SMALL = 1 << 16  # bytes of a request and its answer that the event loop may work through itself
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class TextProcessing:
    """The thread for the texts of large requests, and the tokenisers of the models, which work in it."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._thread = limits, WorkerThread("text")
        self._processors: weakref.WeakKeyDictionary[ServedModel, Any] = weakref.WeakKeyDictionary()

    async def run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function; for a large request or answer beside the event loop."""
        if messages_size() <= _SMALL:
            return function(*arguments)
        return await self._thread.run(function, *arguments)

    async def listed(self, items: Iterable[_Item], *, small: bool = True) -> list[_Item]:
        """All of them; of a large request, and where items are not ``small`` work, beside the event loop."""
        if small and messages_size() <= _SMALL:
            return list(items)
        found, rest = list[_Item](), iter(items)
        while await self._thread.run(_take_some, rest, found):
            pass
        return found

    async def tokenized(self, place: Place, texts: Sequence[str], *, raw: bool) -> list[str | Refusal]:
        """Tokenised texts, or what is wrong with them."""
        factors = 0 if raw else place.model.source_factors
        checked = await self.run(
            lambda: [source_problem(self._limits, text, "texts", factors=factors) or text for text in texts]
        )
        if not raw:
            return checked
        processor = await self._processor(place)

        def tokenize(text: str | Refusal) -> str | Refusal:
            if isinstance(text, Refusal):
                return text
            tokenized: str = processor.tokenize(text)
            return text_problem(self._limits, tokenized, "texts") or tokenized

        return await self.listed(map(tokenize, checked), small=False)

    async def detokenized(self, place: Place, nbest: Sequence[Sequence[str]]) -> list[list[str]]:
        """Running text for every translation of every sentence."""
        processor = await self._processor(place)
        return [await self.listed(map(processor.detokenize, texts), small=False) for texts in nbest]

    async def _processor(self, place: Place) -> Any:
        """The text processing of a model, made once."""
        if place.model.processor is None:
            raise not_supported(f"the model {place.name!r} takes tokenised text only")
        if place.model not in self._processors:
            try:
                self._processors[place.model] = await self._thread.run(place.model.processor)
            except ConfigError as error:
                raise not_supported(str(error)) from error
        return self._processors[place.model]

    def close(self) -> None:
        """Take nothing more."""
        self._thread.close()


def _take_some(items: Iterator[_Item], into: list[_Item]) -> bool:
    """As many as there is time for in one piece; whether there may be more."""
    end = time.perf_counter() + _PIECE
    for item in items:
        into.append(item)
        if time.perf_counter() >= end:
            return True
    return False
