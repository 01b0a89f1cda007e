"""The asyncio client; free of torch."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self

from nmt_core.interfaces import SentencePair
from nmt_core.serving.connection import OPTIONS, Access, Attempts, split_addresses

# isort: split
import grpc

from nmt_core.serving import convert
from nmt_core.serving.client import (
    CHUNK_PAIRS,
    CHUNK_PHRASES,
    chunks_of,
    encode_request,
    list_windows,
    rerank_request,
    text_windows,
    translate_request,
)
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

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
    ) -> None:
        self.addresses = split_addresses(addresses)
        self.model, self._timeout, self._first_wait, self._access = model, timeout, first_wait, access or Access()
        credentials = self._access.credentials()
        self._channels = [
            grpc.aio.insecure_channel(address, options=OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=OPTIONS)
            for address in self.addresses
        ]
        self._stubs = [nmt_pb2_grpc.NmtServiceStub(channel) for channel in self._channels]
        self._next = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        for channel in self._channels:
            await channel.close(None)

    async def call(self, method: str, request: Any) -> Any:
        """Ask and wait; tried again like the calls of ``Connection``. Raises ServiceError."""
        attempts = self._attempts()
        while True:
            stub, address = self._turn()
            try:
                return await getattr(stub, method)(request, timeout=attempts.left, metadata=self._access.metadata)
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
        requests = (convert.score_request(chunk, model=self.model, **options) for chunk in chunks)
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

        One stream; when it breaks another is opened, and what was not answered is asked again.
        """
        stream = _Stream(texts, ahead, lambda text: translate_request([text], self.model, options))
        attempts = self._attempts()
        while True:
            stub, address = self._turn()
            call = stub.TranslateStream(metadata=self._access.metadata)
            sender = asyncio.create_task(stream.send(call))
            try:
                async for answer in call:
                    attempts = self._attempts()  # it works: what follows is another failure
                    if answer.WhichOneof("outcome") == "error":
                        sentence = pb.Translations(error=answer.error)
                    else:
                        sentence = answer.response.sentences[0]
                    if answer.error.code != grpc.StatusCode.UNAVAILABLE.value[0] and stream.done(int(answer.id)):
                        yield int(answer.id), sentence
                await sender
                if stream.finished:
                    return
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(await asyncio.to_thread(attempts.pause, error, address))
            finally:
                sender.cancel()
                call.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def _in_order(self, method: str, requests: Iterable[Any]) -> AsyncIterator[Any]:
        """The answers in order, with a few requests under way; when one fails the others are called off."""
        under_way: collections.deque[asyncio.Task[Any]] = collections.deque()
        try:
            for request in requests:
                under_way.append(asyncio.create_task(self.call(method, request)))
                if len(under_way) >= _IN_FLIGHT * len(self.addresses):
                    yield await under_way.popleft()
            while under_way:
                yield await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()

    def _attempts(self) -> Attempts:
        return Attempts(len(self.addresses), timeout=self._timeout, first_wait=self._first_wait, access=self._access)

    def _turn(self) -> tuple[Any, str]:
        turn = self._next % len(self._stubs)
        self._next += 1
        return self._stubs[turn], self.addresses[turn]


class _Stream:
    """What was read of the input and not yet answered, over all the streams it takes."""

    def __init__(self, texts: AsyncIterable[str] | Iterable[str], ahead: int, make: Any) -> None:
        self._texts = aiter(texts) if isinstance(texts, AsyncIterable) else _asynchronous(texts)
        self._free = asyncio.Semaphore(ahead)
        self._make = make
        self._open: dict[int, pb.TranslateRequest] = {}
        self._number = 0
        self._read_all = False

    @property
    def finished(self) -> bool:
        return self._read_all and not self._open

    def done(self, number: int) -> bool:
        """Note an answer; False for one that was there already."""
        found = self._open.pop(number, None) is not None
        if found:
            self._free.release()
        return found

    async def send(self, call: Any) -> None:
        """Send what another stream left unanswered, then what comes; ends quietly when the stream breaks."""
        try:
            for number, request in list(self._open.items()):
                await call.write(pb.TranslateStreamRequest(id=str(number), request=request))
            while not self._read_all:
                await self._free.acquire()
                text = await anext(self._texts, None)
                if text is None:
                    self._read_all = True
                    break
                request = self._open[self._number] = self._make(text)
                self._number += 1
                await call.write(pb.TranslateStreamRequest(id=str(self._number - 1), request=request))
            await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            return


async def _asynchronous(texts: Iterable[str]) -> AsyncIterator[str]:
    for text in texts:
        yield text
