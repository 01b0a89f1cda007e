"""The asyncio client; free of torch."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self

from nmt_core.base.interfaces import SentencePair
from nmt_core.serving.client.connection import AWAY, Access, Attempts, Connection, OneModel, StreamFailed

# isort: split
import grpc

from nmt_core.serving.client.requests import (
    CHUNK_PAIRS,
    CHUNK_PHRASES,
    chunks_of,
    encode_request,
    list_windows,
    rerank_request,
    score_request,
    text_windows,
    translate_request,
)
from nmt_core.serving.errors import from_error, unavailable
from nmt_core.v1 import nmt_pb2 as pb

_IN_FLIGHT = 4  # requests for each address


class AsyncNmtClient:
    """As ``NmtClient``, with coroutines; an asynchronous context manager, to be made in a running loop.

    A coroutine that is cancelled cancels its call, and the server stops working on it.
    """

    def __init__(
        self,
        addresses: str,
        *,
        model: str = "",
        timeout: float = 600.0,
        first_wait: float = 0.2,
        access: Access | None = None,
        one_model: OneModel | None = None,
    ) -> None:
        how: dict[str, Any] = {"timeout": timeout, "first_wait": first_wait, "access": access}
        self.connection = Connection(addresses, grpc_module=grpc.aio, **how)
        self.model, self._one_model = model, one_model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        for channel in self.connection.channels:
            await channel.close(None)

    async def call(self, method: str, request: Any) -> Any:
        """Ask and wait; tried again like the calls of ``Connection``. Raises ServiceError."""
        answer, _ = await self._ask(method, request)
        return answer

    async def _ask(self, method: str, request: Any) -> tuple[Any, str]:
        """The answer, and the address that gave it."""
        attempts = self.connection.attempts()
        while True:
            stub, address = self.connection.next_stub()
            send = getattr(stub, method)
            try:
                return await send(request, timeout=attempts.left, metadata=self.connection.access.metadata), address
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(await asyncio.to_thread(attempts.pause, error, address))

    async def models(self) -> list[pb.Model]:
        """The models of the server."""
        return list((await self.call("ListModels", pb.ListModelsRequest())).models)

    async def translate(self, texts: Iterable[str], *, window: int = 200, **options: Any) -> list[pb.Translations]:
        """The translations of every text."""
        requests = (translate_request(part, self.model, options) for part in text_windows(texts, window))
        return [one async for response in self._in_order("Translate", requests) for one in response.sentences]

    async def score(self, pairs: Iterable[tuple[str, str]], **options: Any) -> list[pb.PairScore]:
        """The score of every pair."""
        chunks = chunks_of([SentencePair(*pair) for pair in pairs], most=CHUNK_PAIRS)
        requests = (score_request(chunk, model=self.model, **options) for chunk in chunks)
        return [one async for response in self._in_order("Score", requests) for one in response.scores]

    async def rerank(self, lists: Iterable[pb.NbestList], **options: Any) -> list[pb.Ranking]:
        """The rankings of n-best lists."""
        requests = (rerank_request(part, self.model, options) for part in list_windows(lists))
        return [one async for response in self._in_order("Rerank", requests) for one in response.rankings]

    async def encode(self, texts: Iterable[str], **options: Any) -> list[pb.PhraseVector]:
        """The vectors of phrases."""
        requests = (encode_request(part, self.model, options) for part in text_windows(texts, CHUNK_PHRASES))
        return [one async for response in self._in_order("Encode", requests) for one in response.vectors]

    async def translate_stream(
        self, texts: AsyncIterable[str] | Iterable[str], *, ahead: int = 32, **options: Any
    ) -> AsyncIterator[tuple[int, pb.Translations]]:
        """Each text's number (from 0) and translations, as they are finished; ``ahead`` texts are under way.

        One stream; when it breaks, or its server cannot answer, another is opened, and what was not answered is asked
        again, as often as a call is tried. Raises ServiceError.
        """
        stream = _Stream(texts, ahead, lambda text: translate_request([text], self.model, options))
        one_model = self._one_model or OneModel()
        attempts: Attempts | None = None
        try:
            while not stream.finished:
                stub, address = self.connection.next_stub()
                try:
                    async with contextlib.aclosing(self._answers(stub, stream)) as answers:
                        async for answer in answers:
                            sentence = _sentence(answer, one_model, address)
                            if stream.done(int(answer.id)):
                                attempts = None  # it works: what follows is another failure
                                yield int(answer.id), sentence
                except (grpc.aio.AioRpcError, StreamFailed) as error:
                    attempts = attempts or self.connection.attempts()
                    await asyncio.sleep(await asyncio.to_thread(attempts.pause, error, address))
        finally:
            stream.close()

    async def _answers(self, stub: Any, stream: _Stream) -> AsyncGenerator[pb.TranslateStreamResponse, None]:
        """The answers of one stream. Raises StreamFailed for one that ends too early."""
        call = stub.TranslateStream(metadata=self.connection.access.metadata)
        sender = asyncio.create_task(stream.send(call))
        try:
            async for answer in call:
                yield answer
            if stream.problem is not None:
                raise stream.problem
            if not stream.finished:
                problem = "the stream ended before everything was answered"
                raise StreamFailed(unavailable(problem, reason="STREAM_ENDED"))
        finally:
            sender.cancel()
            call.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def _in_order(self, method: str, requests: Iterable[Any]) -> AsyncIterator[Any]:
        """The answers in order, with a few requests under way; when one fails the others are called off."""
        under_way: collections.deque[asyncio.Task[tuple[Any, str]]] = collections.deque()
        one_model = self._one_model or OneModel()

        async def next_answer() -> Any:
            answer, address = await under_way.popleft()
            one_model.check(answer, address)
            return answer

        try:
            for request in requests:
                under_way.append(asyncio.create_task(self._ask(method, request)))
                if len(under_way) >= _IN_FLIGHT * len(self.connection.addresses):
                    yield await next_answer()
            while under_way:
                yield await next_answer()
        finally:
            for task in under_way:
                task.cancel()


def _sentence(answer: pb.TranslateStreamResponse, one_model: OneModel, address: str) -> pb.Translations:
    """The translations of an answer, or its error. Raises StreamFailed where the server cannot answer anything."""
    if answer.WhichOneof("outcome") != "error":
        one_model.check(answer.response, address)
        return answer.response.sentences[0]
    if answer.error.code == AWAY.value[0]:
        raise StreamFailed(from_error(answer.error))
    return pb.Translations(error=answer.error)


class _Stream:
    """What was read of the input and not yet answered, over all the streams it takes."""

    def __init__(self, texts: AsyncIterable[str] | Iterable[str], ahead: int, make: Any) -> None:
        self._texts = aiter(texts) if isinstance(texts, AsyncIterable) else _asynchronous(texts)
        self._free = asyncio.Semaphore(ahead)
        self._make = make
        self._open: dict[int, pb.TranslateRequest] = {}
        self._number = 0
        self._read_all = False
        self._reading: asyncio.Future[str | None] | None = None
        self.problem: Exception | None = None

    @property
    def finished(self) -> bool:
        return self._read_all and not self._open

    def done(self, number: int) -> bool:
        """Note an answer; False for one that was there already."""
        found = self._open.pop(number, None) is not None
        if found:
            self._free.release()
        return found

    def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()

    async def _next_text(self) -> str | None:
        """The next text, as soon as one more may be under way; None behind the last.

        A sender that is cancelled leaves the text that is being read, and the room for it, to the next sender.
        """
        await self._free.acquire()
        if self._reading is None:
            self._reading = asyncio.ensure_future(_next_of(self._texts))
        try:
            text = await asyncio.shield(self._reading)
        except asyncio.CancelledError:
            self._free.release()
            raise
        self._reading = None
        return text

    async def send(self, call: Any) -> None:
        """Send what another stream left unanswered, then what comes; ends quietly when the stream breaks.

        Where the texts cannot be read, that is the ``problem``; what was sent before is answered.
        """
        try:
            for number, request in list(self._open.items()):
                await call.write(pb.TranslateStreamRequest(id=str(number), request=request))
            while not self._read_all:
                text = await self._next_text()
                if text is None:
                    self._read_all = True
                    break
                request = self._open[self._number] = self._make(text)
                self._number += 1
                await call.write(pb.TranslateStreamRequest(id=str(self._number - 1), request=request))
            await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            return
        except Exception as error:
            self.problem = error
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                await call.done_writing()


async def _next_of(texts: AsyncIterator[str]) -> str | None:
    return await anext(texts, None)


async def _asynchronous(texts: Iterable[str]) -> AsyncIterator[str]:
    for text in texts:
        yield text
