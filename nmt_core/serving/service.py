"""The methods of the service: each request is planned, submitted to a device, and replied to.

What concerns a whole request is raised as an ``RpcError`` and becomes the status of the call; what
concerns one item is an ``RpcError`` among the answers and becomes its ``Error``.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import draining
from nmt_core.serving.limits import ACCOUNT, Limits, Memory
from nmt_core.serving.methods.encode import encode
from nmt_core.serving.methods.plan import Method, Reply, check_cost
from nmt_core.serving.methods.rerank import rerank
from nmt_core.serving.methods.score import score
from nmt_core.serving.methods.translate import translate
from nmt_core.serving.models.device import Device
from nmt_core.serving.models.served import describe
from nmt_core.serving.streams import Read, Stream
from nmt_core.serving.telemetry import CALL, Metrics
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc


def _unary(method: Method) -> Any:
    async def answer(self: NmtServicer, request: Any, context: Any) -> bytes:
        return await self.answer(method, request, context)

    return answer


def _stream(method: Method, message: Callable[..., Any]) -> Any:
    async def answer(self: NmtServicer, read: Read, context: Any) -> None:
        await self.answer_stream(read, context, method, message)

    return answer


class NmtServicer(nmt_pb2_grpc.NmtServiceServicer):
    """Answers the methods of the service (see the .proto), UNAVAILABLE before the ``device`` has models."""

    def __init__(
        self,
        *,
        device: str = "cpu",
        limits: Limits | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.metrics = metrics or Metrics()
        self.memory = memory = Memory(self.limits.memory_bytes)
        self.device = Device(device, self.limits, self.metrics)
        self._streams: set[Stream] = set()
        self.metrics.held.set_function(lambda: memory.held.total + memory.waiting.total)

    def begin_drain(self) -> None:
        """Read nothing more from streams; what was read is answered."""
        self.device.draining = True
        for stream in self._streams:
            stream.stop_reading()

    Translate, TranslateStream = _unary(translate), _stream(translate, pb.TranslateStreamResponse)
    Score, ScoreStream = _unary(score), _stream(score, pb.ScoreStreamResponse)
    Rerank, Encode = _unary(rerank), _unary(encode)

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> bytes:
        """Describe the models that the caller may use."""
        models = [self._describe(name) for name in self.device.names(CALL.get().models)]
        return pb.ListModelsResponse(models=models).SerializeToString()

    async def GetModel(self, request: pb.GetModelRequest, context: Any) -> bytes:
        """Describe one of them."""
        return pb.GetModelResponse(model=self._describe(request.name)).SerializeToString()

    async def answer(self, method: Method, request: Any, context: Any) -> bytes:
        """Plan a request, submit it to the device, and make the reply. Raises RpcError."""
        call, held, left = CALL.get(), ACCOUNT.get(), context.time_remaining()
        deadline = None if left is None else time.monotonic() + left
        # texts that are cut into words first take long even where the request is small
        slow = getattr(request, "raw", False) or getattr(request, "form", pb.TEXT_FORM_UNSPECIFIED)
        route = self.device.find(request.model, call.models)
        call.model = route.name
        plan = await off_loop(call.client, math.inf if slow else held.messages, method, request, route, self.limits)
        held.charge(plan.cost.memory)
        held.messages += plan.cost.answer
        found = await self.device.engine.submit(plan.key, plan.parts, client=call.client, deadline=deadline)
        call.count(len(plan.items))
        reply = await off_loop(call.client, math.inf if slow else held.messages, plan.finish, found)
        self._count(route.name, reply)
        check_cost(self.limits, answer=len(reply.content), steps=0)  # words may be longer than their mean length
        return reply.content

    def _count(self, model: str, reply: Reply) -> None:
        """Count the words of a request, and the items that are errors."""
        for kind, words in reply.words.items():
            self.metrics.words.labels(model, kind).inc(words)
        for reason, items in reply.errors.items():
            self.metrics.item_errors.labels(model, reason).inc(items)

    def _describe(self, name: str) -> pb.Model:
        route = self.device.find(name, CALL.get().models)
        return describe(route.name, route.model, self.limits, self.device.engine.device)

    async def answer_stream(self, read: Read, context: Any, method: Method, message: Callable[..., Any]) -> None:
        """Answer the requests of a stream; all have its deadline. Raises RpcError."""
        answer = functools.partial(self.answer, method, context=context)
        stream = Stream(context, answer, message, self.limits, self.memory, self.metrics)
        self._streams.add(stream)
        try:
            if not self.device.draining:
                await stream.run(read)
        finally:
            self._streams.discard(stream)
        if self.device.draining:
            raise draining()
