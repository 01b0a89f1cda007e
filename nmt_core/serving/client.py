"""A model behind gRPC as a ``PairScorer``; free of torch.

Pairs are cut into requests well below the server's limits, several of which are under way at once,
so that the server always has work. A call that finds the server busy or away is tried again a few
times, each time later; scoring is pure, so that does no harm.
"""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nmt_core.errors import ConfigError, NmtError, Overloaded, ServiceError, Unavailable
from nmt_core.interfaces import PairScore, SentencePair

try:
    import grpc

    from nmt_core.serving import convert
    from nmt_core.v1 import nmt_pb2 as pb
    from nmt_core.v1 import nmt_pb2_grpc
except ImportError as error:
    raise NmtError(f"this needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error

_CHUNK_PAIRS = 2000
_CHUNK_CHARACTERS = 1 << 20
_IN_FLIGHT = 4
_TRIES = {grpc.StatusCode.UNAVAILABLE: 5, grpc.StatusCode.RESOURCE_EXHAUSTED: 10}
_LONGEST_WAIT = 10.0  # seconds
_OPTIONS = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", 32 << 20)]


class Connection:
    """Calls to one server; foreign errors are turned into ours here.

    ``timeout`` is what one call may take. A server that is away is asked 5 times, a busy one 10
    times, the first time again after about ``first_wait`` seconds and each time twice as long.
    """

    def __init__(self, address: str, *, timeout: float = 600.0, first_wait: float = 0.2) -> None:
        self.address, self.timeout, self.first_wait = address, timeout, first_wait
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self.stub = nmt_pb2_grpc.NmtServiceStub(self._channel)

    def begin(self, method: str, request: Any) -> Any:
        """Send a request; the answer is ``finish``ed later."""
        return getattr(self.stub, method).future(request, timeout=self.timeout)

    def finish(self, method: str, request: Any, call: Any) -> Any:
        """The answer to a request that was sent. Raises ServiceError."""
        tried = 1
        while True:
            try:
                return call.result()
            except grpc.RpcError as error:
                if tried >= _TRIES.get(error.code(), 1):
                    raise self._translated(error) from error
            time.sleep(min(self.first_wait * 2 ** (tried - 1), _LONGEST_WAIT) * random.uniform(0.7, 1.3))
            call = self.begin(method, request)
            tried += 1

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
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return ServiceError(f"{self.address} gave no answer within {self.timeout:g} s; is the server busy?")
            case grpc.StatusCode.UNIMPLEMENTED:
                return ServiceError(f"{self.address} is not an 'nmt-core serve' of this version ({error.details()})")
            case code:
                return ServiceError(f"{self.address}: {error.details()} ({code.name})")


class RemotePairScorer:
    """A ``PairScorer`` that asks a server; ``model`` may be left out if the server has one model only.

    ``timeout`` and ``first_wait`` are those of ``Connection``. Raises ServiceError when there is no
    such model or no server.
    """

    def __init__(
        self, address: str, *, model: str | None = None, timeout: float = 600.0, first_wait: float = 0.2
    ) -> None:
        self._connection = Connection(address, timeout=timeout, first_wait=first_wait)
        described = self._connection.call("GetModel", pb.GetModelRequest(name=model or "")).model
        self.model: str = described.name
        self._signature: str = described.signature
        self._chunk_pairs = min(_CHUNK_PAIRS, described.limits.items or _CHUNK_PAIRS)

    @property
    def signature(self) -> str:
        """The signature of the model's own scorer: the numbers are the same."""
        return self._signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; one answer per pair, in order. Raises ServiceError, and ConfigError for attention."""
        if attention:
            raise ConfigError("attention is not sent over gRPC; give the model's folder as scorer")
        chunks = _chunks(pairs, most=self._chunk_pairs)
        requests = (convert.score_request(chunk, model=self.model, per_word=per_word) for chunk in chunks)
        scores: list[PairScore] = []
        for response in self._answers(requests):
            scores += convert.from_score_response(response, per_word=per_word)
        if len(scores) != len(pairs):
            raise ServiceError(f"{self._connection.address}: {len(scores)} answers for {len(pairs)} pairs")
        return scores

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def _answers(self, requests: Iterable[pb.ScoreRequest]) -> Iterator[pb.ScoreResponse]:
        """The answers in order, with a few requests under way; when one fails the others are called off."""
        calls: collections.deque[tuple[pb.ScoreRequest, Any]] = collections.deque()
        try:
            for request in requests:
                calls.append((request, self._connection.begin("Score", request)))
                if len(calls) == _IN_FLIGHT:
                    yield self._connection.finish("Score", *calls.popleft())
            while calls:
                yield self._connection.finish("Score", *calls.popleft())
        finally:
            for _, call in calls:
                call.cancel()


def _chunks(pairs: Sequence[SentencePair], *, most: int) -> Iterator[Sequence[SentencePair]]:
    """Cut by number and by size; a character has at most four bytes."""
    start = characters = 0
    for index, pair in enumerate(pairs):
        size = len(pair.source) + len(pair.target)
        if index - start == most or (index > start and characters + size > _CHUNK_CHARACTERS):
            yield pairs[start:index]
            start, characters = index, 0
        characters += size
    if start < len(pairs):
        yield pairs[start:]
