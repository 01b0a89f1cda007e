"""The synchronous client, and a model behind gRPC as a ``PairScorer``; free of torch.

Long lists are cut into several requests, a few of which are in progress at once, so that the server always has work
and memory stays bounded.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from nmt_core.base.errors import ServiceError, Unavailable
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.messages import counted
from nmt_core.serving.client.connection import IN_PROGRESS, Attempts, Connection, OneModel

# isort: split
import grpc

from nmt_core.serving.client.requests import (
    CHARACTERS,
    PAIRS,
    encode_requests,
    items_of,
    method_of,
    rerank_requests,
    score_requests,
    translate_requests,
)
from nmt_core.v1 import nmt_pb2 as pb

_BYTES = 5  # of a message, for each character: four at most, and some for the numbers around a text


class NmtClient:
    """Everything a server can do, from Python; a context manager.

    ``addresses``, and ``connection`` (``timeout``, ``first_wait``, ``access``) are those of ``Connection``; ``model``
    may be left out if the server has one model only. Methods raise ServiceError. Options are the fields
    of the request (``beam=5, nbest=3, raw=True``), answers are messages of ``nmt_core.v1``.

    All answers of one call of a method come from one model, or it raises; with ``one_model`` those of all calls do.
    """

    def __init__(
        self, addresses: str, *, model: str = "", one_model: OneModel | None = None, **connection: Any
    ) -> None:
        self.connection = Connection(addresses, **connection)
        self.model, self._one_model = model, one_model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        for channel in self.connection.channels:
            channel.close()

    def call(self, method: str, request: Any) -> Any:
        """Ask and wait; tried again as ``Attempts`` says. Raises ServiceError."""
        return _Pending(self.connection, method, request).result()[0]

    def models(self) -> list[pb.Model]:
        """The models of the server."""
        return list(self.call("ListModels", pb.ListModelsRequest()).models)

    def translate(self, texts: Iterable[str], **options: Any) -> list[pb.Translations]:
        """The translations of every text."""
        return list(self.translate_lines(texts, **options))

    def translate_lines(self, lines: Iterable[str], *, window: int = 200, **options: Any) -> Iterator[pb.Translations]:
        """The translations of lines of any number, in order; a few windows of lines are read ahead."""
        return self._items(translate_requests(lines, window, model=self.model, **options))

    def score(self, pairs: Iterable[tuple[str, str]], **options: Any) -> list[pb.PairScore]:
        """The score of every pair."""
        return list(self.score_pairs(pairs, **options))

    def score_pairs(
        self, pairs: Iterable[tuple[str, str]], *, window: int = PAIRS, characters: int = CHARACTERS, **options: Any
    ) -> Iterator[pb.PairScore]:
        """The scores of pairs of any number, in order; a few windows of pairs are read ahead.

        A request has at most so many ``characters``, or one pair.
        """
        return self._items(score_requests(pairs, window, characters, model=self.model, **options))

    def rerank(self, lists: Iterable[pb.NbestList], **options: Any) -> list[pb.Ranking]:
        """The rankings of n-best lists."""
        return list(self._items(rerank_requests(lists, model=self.model, **options)))

    def encode(self, texts: Iterable[str], **options: Any) -> list[pb.PhraseVector]:
        """The vectors of phrases."""
        return list(self._items(encode_requests(texts, model=self.model, **options)))

    def _items(self, requests: Iterable[Any]) -> Iterator[Any]:
        """The items of the answers in order, of a few requests at once; where one fails the others are cancelled."""
        in_progress: collections.deque[_Pending] = collections.deque()
        one_model = self._one_model or OneModel()

        def next_items() -> list[Any]:
            answer, address = in_progress.popleft().result()
            one_model.check(answer, address)
            return items_of(answer)

        try:
            for request in requests:
                in_progress.append(_Pending(self.connection, method_of(request), request))
                if len(in_progress) >= IN_PROGRESS * len(self.connection.addresses):
                    yield from next_items()
            while in_progress:
                yield from next_items()
        finally:
            for pending in in_progress:
                pending.call.cancel()


class _Pending:
    """A call in progress."""

    def __init__(self, connection: Connection, method: str, request: Any) -> None:
        self._attempts, self._method, self._request = Attempts(connection), method, request
        self._send()

    def _send(self) -> None:
        self.call = self._attempts.send(self._method, self._request, future=True)

    def result(self) -> tuple[Any, str]:
        """Wait for the answer; and the address that gave it. Raises ServiceError."""
        while True:
            try:
                return self.call.result(), self._attempts.address
            except grpc.RpcError as error:
                time.sleep(self._attempts.pause(error))
            self._send()


class RemotePairScorer:
    """A ``PairScorer`` that asks servers; ``model`` may be left out if they have one model only.

    ``addresses`` may be several with commas, which share the work; ``connection`` is as for ``NmtClient``. Raises
    ServiceError when there is no such model, no server, or servers whose models differ. An address that is away at
    the start is compared when it answers, as is every answer: all scores are of the model that was there at the start.
    """

    def __init__(self, addresses: str, *, model: str | None = None, **connection: Any) -> None:
        self._addresses = addresses
        described = _describe_model(addresses, model or "", **connection)
        self.model: str = described.name
        self.one_model = OneModel(described)
        self._signature: str = described.surface_signature or described.signature
        limits = described.limits
        message = limits.request_bytes or limits.message_bytes  # of servers that tell one, or none
        self._sizes = {
            "window": min(PAIRS, limits.items or PAIRS),
            "characters": min(CHARACTERS, message // _BYTES or CHARACTERS),
        }
        self._client = NmtClient(addresses, model=self.model, one_model=self.one_model, **connection)

    @property
    def signature(self) -> str:
        """The signature of the model's own scorer of surface words: the numbers are the same."""
        return self._signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; one answer per pair, in order. Raises ServiceError."""
        options: dict[str, Any] = {"per_word": per_word, "with_attention": attention, "priority": "PRIORITY_BULK"}
        scores: list[PairScore] = []
        for score in self._client.score_pairs(pairs, form=pb.TEXT_FORM_SURFACE, **self._sizes, **options):
            if score.HasField("error"):
                source = pairs[len(scores)].source[:60]
                raise ServiceError(f"{self._addresses}: {score.error.message} (source {source!r})")
            scores.append(_pair_score(score, per_word=per_word))
        if len(scores) != len(pairs):
            raise ServiceError(f"{self._addresses}: {counted(len(scores), 'answer')} for {counted(len(pairs), 'pair')}")
        return scores

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _pair_score(score: pb.PairScore, *, per_word: bool) -> PairScore:
    """The score of a message that has one."""
    weights, columns = tuple(score.attention), score.attention_columns
    rows = tuple(weights[start : start + columns] for start in range(0, len(weights), columns)) if columns else None
    unknown = score.unknown_source_words, score.unknown_target_words
    return PairScore(score.log_prob, *unknown, tuple(score.word_log_probs) if per_word else None, rows)


def _describe_model(addresses: str, model: str, **connection: Any) -> pb.Model:
    """The model, which has to be the same at all addresses; one that is away now may come back. Raises ServiceError."""
    found: dict[str, pb.Model] = {}
    missing: Unavailable | None = None
    for address in addresses.split(","):
        with NmtClient(address, **connection) as client:
            try:
                described = client.call("GetModel", pb.GetModelRequest(name=model)).model
                found.setdefault(f"{described.version} {described.signature}".strip(), described)
            except Unavailable as error:
                missing = error
    if missing is not None and not found:
        raise missing
    if len(found) > 1:
        raise ServiceError(f"{addresses}: the servers differ in model or arithmetic ({'; '.join(found)})")
    return next(iter(found.values()))
