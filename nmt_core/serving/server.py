"""The gRPC server: requests are checked, queued for the one thread that runs the models, and answered.

Errors become status codes in one place (``_aborting``):

=================== =====================================================
INVALID_ARGUMENT    the request is too large or contradicts itself
NOT_FOUND           there is no such model
RESOURCE_EXHAUSTED  the queue is full: try again later
UNAVAILABLE         the server is still loading, or shutting down
INTERNAL            a mistake of ours; the details are in the server's log
=================== =====================================================
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from nmt_core.errors import NmtError, Overloaded, Unavailable
from nmt_core.inference.beam_search import DecodingConfig
from nmt_core.interfaces import PairScorer, SentencePair
from nmt_core.serving import convert
from nmt_core.serving.batcher import Batcher
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

SERVICE = "nmt_core.v1.NmtService"
MESSAGE_BYTES = 32 << 20

_Response = TypeVar("_Response", pb.TranslateResponse, pb.ScoreResponse)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most."""

    items: int = 20_000
    characters: int = 20_000
    beam: int = 200
    length_ratio: float = 20.0


class TranslateTexts(Protocol):
    """Translates texts: what ``Translator.translate`` does for one set of options."""

    def __call__(self, texts: Sequence[str], options: TranslateOptions) -> Sequence[Any]:
        """The n-best translations of every text."""
        ...


@dataclass(frozen=True)
class TranslateOptions:
    """Options of a Translate request; requests with equal options are translated together."""

    decoding: DecodingConfig
    raw: bool
    attention: bool


@dataclass(frozen=True)
class ServedModel:
    """One model of the server: how to score, how to translate, and what to say of it."""

    scorer: PairScorer
    translate: TranslateTexts
    defaults: DecodingConfig
    source_language: str = ""
    target_language: str = ""
    source_words: int = 0
    target_words: int = 0


class BadRequestError(NmtError):
    """The request is too large or contradicts itself."""


class UnknownModelError(NmtError):
    """There is no model of that name."""


class NmtServicer(nmt_pb2_grpc.NmtServiceServicer):
    """Answers the four methods of the service, UNAVAILABLE before ``load`` is done.

    ``queue`` are the bounds of the ``Batcher``.
    """

    def __init__(self, *, limits: Limits | None = None, **queue: int) -> None:
        self.models: dict[str, ServedModel] = {}
        self.limits = limits or Limits()
        self.batcher = Batcher(self._run, **queue)

    async def load(self, load: Callable[[], Mapping[str, ServedModel]]) -> None:
        """Take the models that ``load`` makes in the model thread; each is asked once, to be warm."""

        def load_and_warm_up() -> dict[str, ServedModel]:
            models = dict(load())
            for model in models.values():
                model.scorer.score([SentencePair("a", "a")])
            return models

        self.models = await self.batcher.in_thread(load_and_warm_up)

    async def Translate(self, request: pb.TranslateRequest, context: Any) -> pb.TranslateResponse:
        """See the .proto."""
        async with _aborting(context):
            name, model = self._find(request.model)
            options = self._options(request, model)
            self._check_items(len(request.texts), request.texts, answers=options.decoding.nbest)
            tokens = sum(text.count(" ") + 2 for text in request.texts) * options.decoding.beam
            found = await self.batcher.submit(("translate", name, options), list(request.texts), tokens=tokens)
            return _checked(convert.translate_response(found))

    async def Score(self, request: pb.ScoreRequest, context: Any) -> pb.ScoreResponse:
        """See the .proto."""
        async with _aborting(context):
            name, _ = self._find(request.model)
            pairs = convert.to_pairs(request)
            self._check_items(len(pairs), (text for pair in pairs for text in pair))
            tokens = sum(pair.source.count(" ") + pair.target.count(" ") + 4 for pair in pairs)
            found = await self.batcher.submit(("score", name, request.per_word), pairs, tokens=tokens)
            return _checked(convert.score_response(found))

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        """See the .proto."""
        async with _aborting(context):
            self._check_loaded()
            return pb.ListModelsResponse(models=[self._describe(name) for name in self.models])

    async def GetModel(self, request: pb.GetModelRequest, context: Any) -> pb.GetModelResponse:
        """See the .proto."""
        async with _aborting(context):
            name, _ = self._find(request.name)
            return pb.GetModelResponse(model=self._describe(name))

    def _run(self, key: Hashable, items: Sequence[Any]) -> Sequence[Any]:
        """Do a batch; called in the model thread."""
        assert isinstance(key, tuple)
        kind, name, options = key
        if not items:
            return []
        if kind == "score":
            return self.models[name].scorer.score(items, per_word=options)
        return self.models[name].translate(items, options)

    def _check_loaded(self) -> None:
        if not self.models:
            raise Unavailable("the models are still being loaded; try again in a moment")

    def _find(self, name: str) -> tuple[str, ServedModel]:
        self._check_loaded()
        if not name and len(self.models) == 1:
            name = next(iter(self.models))
        if name not in self.models:
            asked = f"there is no model {name!r}" if name else "the request names no model"
            raise UnknownModelError(f"{asked}; models here: {', '.join(self.models)}")
        return name, self.models[name]

    def _check_items(self, count: int, texts: Iterable[str], *, answers: int = 1) -> None:
        if count * answers > self.limits.items:
            asked = f"{count} items" if answers == 1 else f"{answers} translations of each of {count} items"
            raise BadRequestError(f"{asked} in one request; at most {self.limits.items}, send several requests")
        for text in texts:
            if len(text) > self.limits.characters:
                raise BadRequestError(f"a text has {len(text)} characters; at most {self.limits.characters}")

    def _options(self, request: pb.TranslateRequest, model: ServedModel) -> TranslateOptions:
        given: dict[str, Any] = {
            name: getattr(request, name)
            for name in ("beam", "nbest", "length_normalization", "max_length_ratio")
            if request.HasField(name)
        }
        if request.forbid_unknown:
            given["forbid_unknown"] = True
        settings = {**model.defaults.to_mapping(), **given}
        if "beam" not in given:
            settings["beam"] = max(settings["beam"], settings["nbest"])
        try:
            decoding = DecodingConfig.from_mapping(settings, origin="request")
        except NmtError as error:
            raise BadRequestError(str(error)) from error
        if decoding.beam > self.limits.beam:
            raise BadRequestError(f"a beam of {decoding.beam}; at most {self.limits.beam}")
        if decoding.nbest > decoding.beam:
            raise BadRequestError(f"{decoding.nbest} best translations need a beam of at least {decoding.nbest}")
        if decoding.max_length_ratio > self.limits.length_ratio:
            raise BadRequestError(f"max_length_ratio {decoding.max_length_ratio}; at most {self.limits.length_ratio}")
        if not math.isfinite(decoding.length_normalization):
            raise BadRequestError("length_normalization must be a finite number")
        return TranslateOptions(decoding, request.raw, request.with_attention)

    def _describe(self, name: str) -> pb.Model:
        model = self.models[name]
        limits = pb.Limits(items=self.limits.items, characters=self.limits.characters, beam=self.limits.beam)
        return pb.Model(
            name=name,
            signature=model.scorer.signature,
            source_language=model.source_language,
            target_language=model.target_language,
            source_words=model.source_words,
            target_words=model.target_words,
            limits=limits,
        )


def _checked(response: _Response) -> _Response:
    """The response, if it can be sent."""
    size = response.ByteSize()
    if size > MESSAGE_BYTES:
        raise BadRequestError(
            f"the answer would have {size >> 20} MiB, at most {MESSAGE_BYTES >> 20}; ask for fewer items in one request"
        )
    return response


@contextlib.asynccontextmanager
async def _aborting(context: Any) -> AsyncIterator[None]:
    """Turn errors inside the block into the status of the call."""
    try:
        yield
    except BadRequestError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    except UnknownModelError as error:
        await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
    except Overloaded as error:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
    except Unavailable as error:
        await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
    except Exception:
        _log.exception("a request failed")
        await context.abort(grpc.StatusCode.INTERNAL, "the server made a mistake; its log says more")


class NmtServer:
    """A server on one address. Raises NmtError when it cannot listen there.

    ``start`` answers (NOT_SERVING, UNAVAILABLE), ``load`` makes it ready, ``stop`` drains and ends it.
    """

    def __init__(self, servicer: NmtServicer, *, host: str, port: int) -> None:
        options = [
            ("grpc.so_reuseport", 0),  # else a second server on the port starts, and gets half the calls
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.max_send_message_length", MESSAGE_BYTES),
        ]
        self.servicer = servicer
        self.health = HealthServicer()
        self._server = grpc.aio.server(options=options)
        nmt_pb2_grpc.add_NmtServiceServicer_to_server(servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        names = (SERVICE, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise NmtError(
                f"cannot listen on {address}; is another server running there? choose another --port, or check --host"
            ) from error

    async def start(self) -> None:
        """Begin to answer, health with NOT_SERVING."""
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.start()

    async def load(self, load: Callable[[], Mapping[str, ServedModel]]) -> None:
        """Load and warm the models, then say SERVING. Raises what ``load`` raises."""
        await self.servicer.load(load)
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float = 30.0) -> None:
        """Refuse new calls, answer those that were accepted (for ``grace`` seconds), and end."""
        await self.health.enter_graceful_shutdown()
        await self._server.stop(grace)
        await self.servicer.batcher.close()

    async def _set_health(self, status: Any) -> None:
        for name in ("", SERVICE):
            await self.health.set(name, status)
