"""The asyncio client; free of torch."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Self

from nmt_core.base.words import utf8
from nmt_core.serving.client.connection import IN_PROGRESS, Attempts, Connection, OneModel

# isort: split
import grpc

from nmt_core.serving.client.requests import (
    encode_requests,
    items_of,
    method_of,
    request_of,
    rerank_requests,
    score_requests,
    translate_requests,
)
from nmt_core.v1 import nmt_pb2 as pb


class AsyncNmtClient:
    """As ``NmtClient``, with coroutines; an asynchronous context manager, to be made in a running loop.

    A coroutine that is cancelled cancels its call, and the server stops working on it.
    """

    def __init__(
        self, addresses: str, *, model: str = "", one_model: OneModel | None = None, **connection: Any
    ) -> None:
        self.connection = Connection(addresses, library=grpc.aio, **connection)
        self.model, self._one_model = model, one_model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        for channel in self.connection.channels:
            await channel.close(None)

    async def call(self, method: str, request: Any) -> Any:
        """Ask and wait; tried again as ``Attempts`` says. Raises ServiceError."""
        return (await self._ask(method, request))[0]

    async def _ask(self, method: str, request: Any) -> tuple[Any, str]:
        """The answer, and the address that gave it."""
        attempts = Attempts(self.connection)
        while True:
            try:
                return await attempts.send(method, request), attempts.address
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(attempts.pause(error))

    async def models(self) -> list[pb.Model]:
        """The models of the server."""
        return list((await self.call("ListModels", pb.ListModelsRequest())).models)

    async def translate(self, texts: Iterable[str], *, window: int = 200, **options: Any) -> list[pb.Translations]:
        """The translations of every text."""
        return await self._items(translate_requests(texts, window, model=self.model, **options))

    async def score(self, pairs: Iterable[tuple[str, str]], **options: Any) -> list[pb.PairScore]:
        """The score of every pair."""
        return await self._items(score_requests(pairs, model=self.model, **options))

    async def rerank(self, lists: Iterable[pb.NbestList], **options: Any) -> list[pb.Ranking]:
        """The rankings of n-best lists."""
        return await self._items(rerank_requests(lists, model=self.model, **options))

    async def encode(self, texts: Iterable[str], **options: Any) -> list[pb.PhraseVector]:
        """The vectors of phrases."""
        return await self._items(encode_requests(texts, model=self.model, **options))

    async def translate_stream(
        self, texts: AsyncIterable[str] | Iterable[str], *, ahead: int = 32, **options: Any
    ) -> AsyncIterator[tuple[int, pb.Translations]]:
        """Each text's number (from 0) and translations, as they are finished; ``ahead`` texts are in progress.

        Where the texts end with an exception, what was read before is answered first. Raises ServiceError.
        """
        one_model, source = self._one_model or OneModel(), _asynchronous(texts)
        reading: asyncio.Future[str | None] | None = asyncio.ensure_future(anext(source, None))
        asked: dict[asyncio.Future[Any], int] = {}
        problem: BaseException | None = None
        number = 0
        try:
            while reading or asked:
                awaited = [*asked, *([reading] if reading and len(asked) < ahead else [])]
                done, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                for one in done & asked.keys():
                    answer, address = one.result()
                    one_model.check(answer, address)
                    yield asked.pop(one), answer.sentences[0]
                if reading in done:
                    problem = reading.exception()
                    text, reading = None if problem else reading.result(), None
                    if text is not None:
                        request = request_of(pb.TranslateRequest, texts=[utf8(text)], model=self.model, **options)
                        asked[asyncio.ensure_future(self._ask("Translate", request))] = number
                        number += 1
                        reading = asyncio.ensure_future(anext(source, None))
            if problem is not None:
                raise problem
        finally:
            for one in [*asked, *([reading] if reading else [])]:
                one.cancel()

    async def _items(self, requests: Iterable[Any]) -> list[Any]:
        """The items of the answers in order, of a few requests at once; where one fails the others are cancelled."""
        in_progress: collections.deque[asyncio.Task[tuple[Any, str]]] = collections.deque()
        one_model = self._one_model or OneModel()
        items: list[Any] = []

        async def take_one() -> None:
            answer, address = await in_progress.popleft()
            one_model.check(answer, address)
            items.extend(items_of(answer))

        try:
            for request in requests:
                in_progress.append(asyncio.create_task(self._ask(method_of(request), request)))
                if len(in_progress) >= IN_PROGRESS * len(self.connection.addresses):
                    await take_one()
            while in_progress:
                await take_one()
        finally:
            for task in in_progress:
                task.cancel()
        return items


async def _asynchronous(texts: AsyncIterable[str] | Iterable[str]) -> AsyncIterator[str]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text
