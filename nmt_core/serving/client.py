"""A model behind gRPC as a ``PairScorer``; free of torch.

Pairs are cut into requests well below the server's limits, several of which are under way at once,
so that the server always has work. A call that finds the server busy or away is tried again a few
times, each time later; scoring is pure, so that does no harm.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grpc

from nmt_core.errors import Overloaded, ServiceError, Unavailable
from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.serving import convert
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

_CHUNK_PAIRS = 2000
_CHUNK_CHARACTERS = 1 << 20
_IN_FLIGHT = 4
_TRIES = 5
_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
_OPTIONS = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", 32 << 20)]


class Connection:
    """Calls to one server; foreign errors are turned into ours here."""

    def __init__(self, address: str, *, timeout: float = 600.0, first_wait: float = 0.2) -> None:
        self.address, self.timeout, self.first_wait = address, timeout, first_wait
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self.stub = nmt_pb2_grpc.NmtServiceStub(self._channel)

    def begin(self, method: str, request: Any) -> Any:
        """Send a request; the answer is ``finish``ed later."""
        return getattr(self.stub, method).future(request, timeout=self.timeout)

    def finish(self, method: str, request: Any, call: Any) -> Any:
        """The answer to a request that was sent. Raises ServiceError."""
        for tried in range(_TRIES):
            try:
                return call.result()
            except grpc.RpcError as error:
                if error.code() not in _AGAIN or tried == _TRIES - 1:
                    raise self._translated(error) from error
                time.sleep(self.first_wait * 2**tried)
                call = self.begin(method, request)
        raise AssertionError("the last try returns or raises")

    def call(self, method: str, request: Any) -> Any:
        """Ask and wait. Raises ServiceError."""
        return self.finish(method, request, self.begin(method, request))

    def close(self) -> None:
        """Give the connection back."""
        self._channel.close()

    def _translated(self, error: Any) -> ServiceError:
        match error.code():
            case grpc.StatusCode.UNAVAILABLE:
                return Unavailable(
                    f"nothing answers at {self.address} ({error.details()}); is 'nmt-core serve' running there?"
                )
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return Overloaded(f"{self.address}: {error.details()}")
            case code:
                return ServiceError(f"{self.address}: {error.details()} ({code.name})")


class RemotePairScorer:
    """A ``PairScorer`` that asks a server; ``model`` may be left out if the server has one model only."""

    def __init__(self, address: str, *, model: str | None = None, timeout: float = 600.0) -> None:
        self._connection = Connection(address, timeout=timeout)
        described = self._connection.call("GetModel", pb.GetModelRequest(name=model or "")).model
        self.model: str = described.name
        self._signature: str = described.signature

    @property
    def signature(self) -> str:
        """The signature of the model's own scorer: the numbers are the same."""
        return self._signature

    def score(self, pairs: Sequence[SentencePair], *, per_word: bool = False) -> list[PairScore]:
        """Score every pair; one answer per pair, in order. Raises ServiceError."""
        requests = (convert.score_request(chunk, model=self.model, per_word=per_word) for chunk in _chunks(pairs))
        scores: list[PairScore] = []
        for response in self._answers(requests):
            scores += convert.from_score_response(response, per_word=per_word)
        if len(scores) != len(pairs):
            raise ServiceError(f"{self._connection.address}: {len(scores)} answers for {len(pairs)} pairs")
        return scores

    def _answers(self, requests: Iterable[pb.ScoreRequest]) -> Iterator[pb.ScoreResponse]:
        """The answers in order, with a few requests under way."""
        calls: collections.deque[tuple[pb.ScoreRequest, Any]] = collections.deque()
        for request in requests:
            calls.append((request, self._connection.begin("Score", request)))
            if len(calls) == _IN_FLIGHT:
                yield self._connection.finish("Score", *calls.popleft())
        while calls:
            yield self._connection.finish("Score", *calls.popleft())


def _chunks(pairs: Sequence[SentencePair]) -> Iterator[Sequence[SentencePair]]:
    """Cut by number and by size."""
    start = characters = 0
    for index, pair in enumerate(pairs):
        size = len(pair.source) + len(pair.target)
        if index - start == _CHUNK_PAIRS or (index > start and characters + size > _CHUNK_CHARACTERS):
            yield pairs[start:index]
            start, characters = index, 0
        characters += size
    if start < len(pairs):
        yield pairs[start:]
