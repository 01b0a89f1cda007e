"""The gRPC server: requests are checked, queued for the one thread that runs the models, and answered.

Errors become status codes in one place (``_aborting``):

=================== =====================================================
INVALID_ARGUMENT    the request is too large or contradicts itself
NOT_FOUND           there is no such model
RESOURCE_EXHAUSTED  the queue is full: try again later
UNAVAILABLE         the server is shutting down: try again elsewhere
INTERNAL            a mistake of ours; the details are in the server's log
=================== =====================================================
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from nmt_core.errors import NmtError, Overloaded, Unavailable
from nmt_core.inference.beam_search import DecodingConfig
from nmt_core.interfaces import PairScorer
from nmt_core.serving import convert
from nmt_core.serving.batcher import Batcher
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

SERVICE = "nmt_core.v1.NmtService"
MESSAGE_BYTES = 32 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most."""

    items: int = 20_000
    characters: int = 20_000
    beam: int = 200


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
    """Answers the four methods of the service."""

    def __init__(self, models: Mapping[str, ServedModel], *, limits: Limits | None = None, **queue: int) -> None:
        self.models, self.limits = dict(models), limits or Limits()
        self.batcher = Batcher(self._run, **queue)

    async def Translate(self, request: pb.TranslateRequest, context: Any) -> pb.TranslateResponse:
        """See the .proto."""
        async with _aborting(context):
            name, model = self._find(request.model)
            self._check_items(len(request.texts), request.texts)
            options = self._options(request, model)
            tokens = sum(len(text.split(" ")) for text in request.texts) * options.decoding.beam
            found = await self.batcher.submit(("translate", name, options), list(request.texts), tokens=tokens)
            return convert.translate_response(found)

    async def Score(self, request: pb.ScoreRequest, context: Any) -> pb.ScoreResponse:
        """See the .proto."""
        async with _aborting(context):
            name, _ = self._find(request.model)
            pairs = convert.to_pairs(request)
            self._check_items(len(pairs), (text for pair in pairs for text in pair))
            tokens = sum(pair.source.count(" ") + pair.target.count(" ") + 4 for pair in pairs)
            found = await self.batcher.submit(("score", name, request.per_word), pairs, tokens=tokens)
            return convert.score_response(found)

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        """See the .proto."""
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

    def _find(self, name: str) -> tuple[str, ServedModel]:
        if not name and len(self.models) == 1:
            name = next(iter(self.models))
        if name not in self.models:
            asked = f"there is no model {name!r}" if name else "the request names no model"
            raise UnknownModelError(f"{asked}; models here: {', '.join(self.models)}")
        return name, self.models[name]

    def _check_items(self, count: int, texts: Any) -> None:
        if count > self.limits.items:
            raise BadRequestError(f"{count} items in one request; at most {self.limits.items}, send several requests")
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
    """A server on one address; NOT_SERVING until ``start`` is done and again from ``stop`` on."""

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
        try:
            self.port: int = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise NmtError(
                f"cannot listen on {host}:{port}; is another server running there? choose another --port"
            ) from error

    async def start(self, warm_up: Callable[[], None] | None = None) -> None:
        """Begin to answer; ``warm_up`` runs before the server says that it is ready."""
        await self.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.start()
        if warm_up is not None:
            warm_up()
        for name in ("", SERVICE):
            await self.health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float = 30.0) -> None:
        """Refuse new calls, answer those that were accepted, and end."""
        await self.health.enter_graceful_shutdown()
        await self._server.stop(grace)
        await self.servicer.batcher.close()

    async def wait(self) -> None:
        """Until ``stop`` was called."""
        await self._server.wait_for_termination()
