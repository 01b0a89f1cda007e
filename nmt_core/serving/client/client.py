"""The synchronous client, and a model behind gRPC as a ``PairScorer``; free of torch.

Long lists are cut into requests well below the server's limits, several of which are under way at
once, so that the server always has work and memory stays bounded.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from nmt_core.base.errors import ServiceError, Unavailable
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.messages import counted
from nmt_core.serving.client.connection import Access, Connection, OneModel, Pending

# isort: split
from nmt_core.serving.client.requests import (
    CHUNK_CHARACTERS,
    CHUNK_PAIRS,
    CHUNK_PHRASES,
    chunks_of,
    encode_request,
    from_pair_score,
    list_windows,
    rerank_request,
    score_request,
    text_windows,
    translate_request,
    windows,
)
from nmt_core.v1 import nmt_pb2 as pb

_BYTES = 5  # of a message, for each character: four at most, and some for the numbers around a text
_IN_FLIGHT = 4  # requests for each address
PRIORITIES = {"auto": pb.PRIORITY_UNSPECIFIED, "interactive": pb.PRIORITY_INTERACTIVE, "bulk": pb.PRIORITY_BULK}


class NmtClient:
    """Everything a server can do, from Python; a context manager.

    ``addresses``, ``timeout``, ``first_wait`` and ``access`` are those of ``Connection``; ``model`` may
    be left out if the server has one model only. Methods raise ServiceError. Options are the fields
    of the request (``beam=5, nbest=3, raw=True``), answers are messages of ``nmt_core.v1``.

    All answers of one call of a method come from one model, or it raises; with ``one_model`` those of all calls do.
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
        self.connection = Connection(addresses, timeout=timeout, first_wait=first_wait, access=access)
        self.model, self._one_model = model, one_model

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def models(self) -> list[pb.Model]:
        """The models of the server."""
        return list(self.connection.call("ListModels", pb.ListModelsRequest()).models)

    def translate(self, texts: Iterable[str], **options: Any) -> list[pb.Translations]:
        """The translations of every text."""
        return list(self.translate_lines(texts, **options))

    def translate_lines(self, lines: Iterable[str], *, window: int = 200, **options: Any) -> Iterator[pb.Translations]:
        """The translations of lines of any number, in order; a few windows of lines are read ahead."""
        requests = (translate_request(part, self.model, options) for part in text_windows(lines, window))
        for response in self._in_order("Translate", requests):
            yield from response.sentences

    def score(self, pairs: Iterable[tuple[str, str]], **options: Any) -> list[pb.PairScore]:
        """The score of every pair."""
        return list(self.score_pairs(pairs, **options))

    def score_pairs(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        window: int = CHUNK_PAIRS,
        characters: int = CHUNK_CHARACTERS,
        **options: Any,
    ) -> Iterator[pb.PairScore]:
        """The scores of pairs of any number, in order; a few windows of pairs are read ahead.

        A request has at most so many ``characters``, or one pair.
        """
        named = (SentencePair(*pair) for pair in pairs)
        parts = windows(named, window)
        chunks = (chunk for part in parts for chunk in chunks_of(part, most=window, characters=characters))
        requests = (score_request(chunk, model=self.model, **options) for chunk in chunks)
        for response in self._in_order("Score", requests):
            yield from response.scores

    def rerank(self, lists: Iterable[pb.NbestList], **options: Any) -> list[pb.Ranking]:
        """The rankings of n-best lists."""
        requests = (rerank_request(part, self.model, options) for part in list_windows(lists))
        return [one for response in self._in_order("Rerank", requests) for one in response.rankings]

    def encode(self, texts: Iterable[str], **options: Any) -> list[pb.PhraseVector]:
        """The vectors of phrases."""
        requests = (encode_request(part, self.model, options) for part in text_windows(texts, CHUNK_PHRASES))
        return [one for response in self._in_order("Encode", requests) for one in response.vectors]

    def close(self) -> None:
        """Give the connections back."""
        self.connection.close()

    def _in_order(self, method: str, requests: Iterable[Any]) -> Iterator[Any]:
        """The answers in order, with a few requests under way; when one fails the others are called off."""
        under_way: collections.deque[Pending] = collections.deque()
        one_model = self._one_model or OneModel()
        try:
            for request in requests:
                under_way.append(Pending(self.connection, method, request))
                if len(under_way) >= _IN_FLIGHT * len(self.connection.addresses):
                    yield under_way.popleft().result(one_model)
            while under_way:
                yield under_way.popleft().result(one_model)
        finally:
            for pending in under_way:
                pending.cancel()


class RemotePairScorer:
    """A ``PairScorer`` that asks servers; ``model`` may be left out if they have one model only.

    ``address`` may be several with commas, which share the work. Raises ServiceError when there is no
    such model, no server, or servers whose models differ. An address that is away at the start is compared when it
    answers, as is every answer: all scores are of the model that was there at the start.
    """

    def __init__(
        self,
        address: str,
        *,
        model: str | None = None,
        timeout: float = 600.0,
        first_wait: float = 0.2,
        access: Access | None = None,
    ) -> None:
        self._address = address
        described = describe_model(address, model or "", timeout=timeout, first_wait=first_wait, access=access)
        self.model: str = described.name
        self.one_model = OneModel(described)
        self._signature: str = described.surface_signature or described.signature
        limits = described.limits
        self._chunk_pairs = min(CHUNK_PAIRS, limits.items or CHUNK_PAIRS)
        message = limits.request_bytes or limits.message_bytes  # of servers that tell one, or none
        self._chunk_characters = min(CHUNK_CHARACTERS, message // _BYTES or CHUNK_CHARACTERS)
        self._attends = described.attends
        how: dict[str, Any] = {"timeout": timeout, "first_wait": first_wait, "access": access}
        self._client = NmtClient(address, model=self.model, one_model=self.one_model, **how)

    @property
    def signature(self) -> str:
        """The signature of the model's own scorer of surface words: the numbers are the same."""
        return self._signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; one answer per pair, in order. Raises ServiceError."""
        options = {
            "per_word": per_word,
            "with_attention": attention,
            "priority": pb.PRIORITY_BULK,
            "form": pb.TEXT_FORM_SURFACE,
        }
        scores: list[PairScore] = []
        sizes = {"window": self._chunk_pairs, "characters": self._chunk_characters}
        for score in self._client.score_pairs(pairs, **sizes, **options):
            if score.HasField("error"):
                pair = pairs[len(scores)]
                raise ServiceError(f"{self._address}: {score.error.message} (source {pair.source[:60]!r})")
            scores.append(from_pair_score(score, per_word=per_word))
        if len(scores) != len(pairs):
            raise ServiceError(f"{self._address}: {counted(len(scores), 'answer')} for {counted(len(pairs), 'pair')}")
        return scores

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def describe_model(addresses: str, model: str, **options: Any) -> pb.Model:
    """The model, which has to be the same at all addresses; one that is away now may come back. Raises ServiceError."""
    found: dict[str, pb.Model] = {}
    missing: Unavailable | None = None
    for address in addresses.split(","):
        connection = Connection(address, **options)
        try:
            described = connection.call("GetModel", pb.GetModelRequest(name=model)).model
            found.setdefault(f"{described.version} {described.signature}".strip(), described)
        except Unavailable as error:
            missing = error
        finally:
            connection.close()
    if not found:
        raise missing or Unavailable(f"nothing answers at {addresses}")
    if len(found) > 1:
        raise ServiceError(f"{addresses}: the servers differ in model or arithmetic ({'; '.join(found)})")
    return next(iter(found.values()))
