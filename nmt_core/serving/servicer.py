"""The methods of the service: requests are checked, queued for a device, and answered.

What concerns a whole request is raised as a ``Refusal`` and becomes the status of the call; what
concerns one item is a ``Refusal`` in its place among the answers and becomes its ``Error``.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from google.rpc import code_pb2

from nmt_core.errors import ConfigError, NmtError
from nmt_core.inference.search_config import DecodingConfig
from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.serving import convert
from nmt_core.serving.calls import note
from nmt_core.serving.engine import Engine
from nmt_core.serving.limits import Limits
from nmt_core.serving.models import Decoding, Encoding, Scoring, Sentence, ServedModel
from nmt_core.serving.refusal import Refusal, internal, invalid, not_supported, to_error, unavailable
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

if TYPE_CHECKING:
    from nmt_core.inference.text_forms import TextForm
    from nmt_core.inference.translator import Translation
    from nmt_core.serving.metrics import Metrics

INTERACTIVE_ITEMS = 32
"""Requests of so many items at most are interactive unless they say otherwise."""

_TEXTS_AT_A_TIME = 50
_LONGEST_ID = 128
_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Message = TypeVar("_Message", pb.TranslateResponse, pb.ScoreResponse, pb.EncodeResponse, pb.RerankResponse)

Load = Callable[[str], Mapping[str, ServedModel]]
"""Loads all models for one device; called in that device's thread."""


class _Place(NamedTuple):
    """A model, and the device that will do the work."""

    name: str
    model: ServedModel
    engine: Engine


class _Ask(NamedTuple):
    """What work is wanted, how urgently, and by when (seconds of ``time.monotonic``)."""

    key: Hashable
    lane: str
    deadline: float | None


class NmtServicer(nmt_pb2_grpc.NmtServiceServicer):
    """Answers the methods of the service, UNAVAILABLE before ``load`` is done.

    Every device has an ``Engine`` and a copy of every model; a request goes to the device with the
    shortest queue. ``queue`` are the bounds of the engines.
    """

    def __init__(
        self,
        *,
        devices: Sequence[str] = ("cpu",),
        limits: Limits | None = None,
        metrics: Metrics | None = None,
        **queue: Any,
    ) -> None:
        self.limits = limits or Limits()
        self.draining = False
        self._models: dict[str, dict[str, ServedModel]] = {}
        self._metrics = metrics
        self.engines = {
            device: Engine(functools.partial(self._work, device), device=device, observer=metrics, **queue)
            for device in devices
        }
        if metrics is not None:
            for device, engine in self.engines.items():
                metrics.watch(device, engine)
        self._text_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="text")
        self._processors: dict[str, Any] = {}
        self._readers: set[asyncio.Task[None]] = set()

    async def load(self, load: Load) -> None:
        """Take the models that ``load`` makes for each device; each does its work once, to be warm."""

        def load_and_warm_up(device: str) -> dict[str, ServedModel]:
            begin = time.monotonic()
            models = dict(load(device))
            for model in models.values():
                model.warm_up()
            if self._metrics is not None:
                self._metrics.load_seconds.labels(device).set(time.monotonic() - begin)
            return models

        parts = [engine.in_thread(functools.partial(load_and_warm_up, name)) for name, engine in self.engines.items()]
        self._models = dict(zip(self.engines, await asyncio.gather(*parts), strict=True))

    def begin_drain(self) -> None:
        """Read nothing more from streams; what was read is answered."""
        self.draining = True
        for reader in self._readers:
            reader.cancel()

    async def close(self) -> None:
        """Finish what was accepted."""
        for engine in self.engines.values():
            await engine.close()
        self._text_thread.shutdown()

    # ---- methods

    async def Translate(self, request: pb.TranslateRequest, context: Any) -> pb.TranslateResponse:
        """See the .proto."""
        return await self._translate(request, _deadline(context))

    async def Score(self, request: pb.ScoreRequest, context: Any) -> pb.ScoreResponse:
        """See the .proto."""
        return await self._score(request, _deadline(context))

    async def TranslateStream(self, requests: Any, context: Any) -> None:
        """See the .proto."""
        await self._stream(requests, context, self._translate, pb.TranslateStreamResponse)

    async def ScoreStream(self, requests: Any, context: Any) -> None:
        """See the .proto."""
        await self._stream(requests, context, self._score, pb.ScoreStreamResponse)

    async def Rerank(self, request: pb.RerankRequest, context: Any) -> pb.RerankResponse:
        """See the .proto."""
        place = self._find(request.model)
        pairs = [SentencePair(one.source, each.target) for one in request.lists for each in one.hypotheses]
        _check_columns(request)
        key = Scoring(place.name, form=_text_form(place, request.form))
        ask = self._ask(key, request.priority, len(pairs), _deadline(context))
        scores = await self._scores(place, ask, pairs, "lists")
        rankings, start = [], 0
        for one in request.lists:
            rankings.append(_ranking(one, scores[start : start + len(one.hypotheses)], request))
            start += len(one.hypotheses)
        return self._checked(pb.RerankResponse(rankings=rankings))

    async def Encode(self, request: pb.EncodeRequest, context: Any) -> pb.EncodeResponse:
        """See the .proto."""
        place = self._find(request.model)
        if place.model.encode is None:
            raise not_supported(f"the model {place.name!r} has no single vector of a phrase; an rnnencdec has")
        self.limits.check_items(len(request.texts), "texts")
        texts = await self._tokenized(place, request.texts, raw=request.raw)
        ask = self._ask(Encoding(place.name), request.priority, len(texts), _deadline(context))
        found = await self._do(place, ask, texts, cost=lambda text: convert.words_in(text) + 1)
        vectors = [
            pb.PhraseVector(error=to_error(one))
            if isinstance(one, Refusal)
            else pb.PhraseVector(values=one[0], unknown_words=one[1])
            for one in found
        ]
        return self._checked(pb.EncodeResponse(vectors=vectors))

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        """See the .proto."""
        return pb.ListModelsResponse(models=[self._describe(self._find(name)) for name in self._names()])

    async def GetModel(self, request: pb.GetModelRequest, context: Any) -> pb.GetModelResponse:
        """See the .proto."""
        return pb.GetModelResponse(model=self._describe(self._find(request.name)))

    # ---- what streams and single calls have in common

    async def _translate(self, request: pb.TranslateRequest, deadline: float | None) -> pb.TranslateResponse:
        place = self._find(request.model)
        config = self._decoding(request, place.model)
        attention = request.with_attention or request.replace_unknown
        if request.replace_unknown and not place.model.attends:
            raise not_supported(f"replace_unknown needs a model with attention; {place.name!r} has none")
        self.limits.check_items(len(request.texts), "texts", answers=config.nbest)
        texts = await self._tokenized(place, request.texts, raw=request.raw)
        ask = self._ask(Decoding(place.name, attention), request.priority, len(texts), deadline)
        sentences = [text if isinstance(text, Refusal) else Sentence(text, config) for text in texts]
        found = await self._do(
            place, ask, sentences, cost=lambda sentence: (convert.words_in(sentence.text) + 2) * config.beam
        )
        show = self._replaced if request.replace_unknown else _texts
        shown = [[] if isinstance(one, Refusal) else show(place, one) for one in found]
        if request.raw:
            processor = await self._processor(place)
            shown = [await self._in_text_thread(processor.detokenize, texts) for texts in shown]
        self._count_words(place.name, "read", (convert.words_in(text) for text in texts if isinstance(text, str)))
        self._count_words(place.name, "written", [len(one[0].words) for one in found if not isinstance(one, Refusal)])
        answers = [
            convert.translations(one, texts, attention=request.with_attention)
            for one, texts in zip(found, shown, strict=True)
        ]
        return self._checked(pb.TranslateResponse(sentences=answers))

    async def _score(self, request: pb.ScoreRequest, deadline: float | None) -> pb.ScoreResponse:
        place = self._find(request.model)
        pairs = convert.to_pairs(request)
        key = Scoring(place.name, request.per_word, request.with_attention, _text_form(place, request.form))
        ask = self._ask(key, request.priority, len(pairs), deadline)
        scores = await self._scores(place, ask, pairs, "pairs")
        return self._checked(convert.score_response(scores, request))

    async def _scores(
        self, place: _Place, ask: _Ask, pairs: Sequence[SentencePair], field: str
    ) -> list[PairScore | Refusal]:
        self.limits.check_items(len(pairs), field)
        problem = self.limits.text_problem
        items = [problem(pair.source, field) or problem(pair.target, field) or pair for pair in pairs]
        found = await self._do(place, ask, items, cost=lambda pair: pair.source.count(" ") + pair.target.count(" ") + 4)
        self._count_words(place.name, "scored", (convert.words_in(pair.target) for pair in pairs))
        return found

    async def _stream(
        self,
        requests: AsyncIterator[Any],
        context: Any,
        answer: Callable[[Any, float | None], Awaitable[Any]],
        response_type: Callable[..., Any],
    ) -> None:
        """Answer requests as they finish. A place is free again when its answer was taken by the network."""
        deadline = _deadline(context)
        free = asyncio.Semaphore(self.limits.stream_requests)
        done: asyncio.Queue[Any] = asyncio.Queue()
        tasks: set[asyncio.Task[None]] = set()
        begun = written = 0

        async def patiently(request: Any) -> Any:
            """The answer. A full queue holds the stream up instead of refusing what it sends."""
            while True:
                try:
                    return await answer(request, deadline)
                except Refusal as refusal:
                    if refusal.reason != "QUEUE_FULL":
                        raise
                    await asyncio.sleep(min(refusal.retry_after or 1.0, 1.0))

        async def one(message: Any) -> None:
            try:
                if len(message.id) > _LONGEST_ID:
                    raise invalid("id", f"the id has {len(message.id)} characters; at most {_LONGEST_ID}")
                done.put_nowait(response_type(id=message.id, response=await patiently(message.request)))
            except Refusal as refusal:
                done.put_nowait(response_type(id=message.id[:_LONGEST_ID], error=to_error(refusal)))
            except Exception:
                _log.exception("a request of a stream failed")
                done.put_nowait(response_type(id=message.id[:_LONGEST_ID], error=to_error(internal())))

        async def read() -> None:
            nonlocal begun
            end: Exception | None = None
            try:
                await free.acquire()
                async for message in requests:
                    task = asyncio.create_task(one(message))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                    begun += 1
                    await free.acquire()
            except Refusal as refusal:
                end = refusal
            finally:
                done.put_nowait(end)

        reader = asyncio.create_task(read())
        self._readers.add(reader)
        if self.draining:
            reader.cancel()
        reading, problem = True, None
        try:
            while reading or written < begun:
                response = await done.get()
                if response is None or isinstance(response, Exception):
                    reading, problem = False, response
                    continue
                await context.write(response)
                written += 1
                free.release()
        finally:
            self._readers.discard(reader)
            for task in (reader, *tasks):
                task.cancel()
            await asyncio.gather(reader, *tasks, return_exceptions=True)
        if problem is not None:
            raise problem
        if self.draining:
            raise _draining()

    # ---- the way to the device and back

    def _work(self, device: str, key: Any) -> Any:
        return self._models[device][key.model].work(key)

    async def _do(self, place: _Place, ask: _Ask, items: Sequence[Any], *, cost: Callable[[Any], int]) -> list[Any]:
        """An answer or a Refusal for every item; an item that is a Refusal already keeps it."""
        note(model=place.name, items=len(items))
        good = [index for index, item in enumerate(items) if not isinstance(item, Refusal)]
        tokens = [cost(items[index]) for index in good]
        chosen = [items[index] for index in good]
        answers = await place.engine.submit(ask.key, chosen, tokens=tokens, lane=ask.lane, deadline=ask.deadline)
        found = list(items)
        for index, answer in zip(good, answers, strict=True):
            found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
        return found

    def _ask(self, key: Hashable, priority: int, items: int, deadline: float | None) -> _Ask:
        few = priority == pb.PRIORITY_UNSPECIFIED and items <= INTERACTIVE_ITEMS
        return _Ask(key, "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk", deadline)

    async def _tokenized(self, place: _Place, texts: Sequence[str], *, raw: bool) -> list[str | Refusal]:
        """Tokenised texts, or what is wrong with them."""
        checked = [self.limits.text_problem(text, "texts") or text for text in texts]
        if not raw:
            return checked
        processor = await self._processor(place)

        def tokenize(text: str | Refusal) -> str | Refusal:
            if isinstance(text, Refusal):
                return text
            tokenized: str = processor.tokenize(text)
            return self.limits.text_problem(tokenized, "texts") or tokenized

        return await self._in_text_thread(tokenize, checked)

    async def _processor(self, place: _Place) -> Any:
        """The text processing of a model, made once."""
        if place.model.processor is None:
            raise not_supported(f"the model {place.name!r} takes tokenised text only")
        if place.name not in self._processors:
            loop = asyncio.get_running_loop()
            self._processors[place.name] = await loop.run_in_executor(self._text_thread, place.model.processor)
        return self._processors[place.name]

    async def _in_text_thread(self, change: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Change every item; others may come in between."""
        loop = asyncio.get_running_loop()
        changed: list[_Result] = []
        for start in range(0, len(items), _TEXTS_AT_A_TIME):
            part = items[start : start + _TEXTS_AT_A_TIME]
            changed += await loop.run_in_executor(self._text_thread, list, map(change, part))
        return changed

    def _replaced(self, place: _Place, nbest: Sequence[Translation]) -> list[str]:
        """The texts without <unk>, which are counted."""
        written = [convert.with_unknown_replaced(one, place.model.unknowns) for one in nbest]
        self._count_words(place.name, "copied", (counts.copied for _, counts in written))
        self._count_words(place.name, "translated", (counts.translated for _, counts in written))
        return [text for text, _ in written]

    def _count_words(self, model: str, kind: str, words: Iterable[int]) -> None:
        if self._metrics is not None:
            self._metrics.words.labels(model, kind).inc(sum(words))

    # ---- models and options

    def _names(self) -> list[str]:
        if self.draining:
            raise _draining()
        if not self._models:
            raise unavailable("the models are still being loaded; try again in a moment", reason="LOADING")
        return list(next(iter(self._models.values())))

    def _find(self, name: str) -> _Place:
        names = self._names()
        if not name and len(names) == 1:
            name = names[0]
        if name not in names:
            asked = f"there is no model {name[:100]!r}" if name else "the request names no model"
            problem = f"{asked}; models here: {', '.join(names)}"
            raise Refusal(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_MODEL", field="model")
        device = min(self.engines, key=self._load_of)
        return _Place(name, self._models[device][name], self.engines[device])

    def _load_of(self, device: str) -> tuple[int, int]:
        """What waits there, and of equally short queues what runs."""
        engine = self.engines[device]
        return engine.waiting_tokens, engine.running_items

    def _decoding(self, request: pb.TranslateRequest, model: ServedModel) -> DecodingConfig:
        options = ("beam", "nbest", "length_normalization", "max_length_ratio")
        given: dict[str, Any] = {name: getattr(request, name) for name in options if request.HasField(name)}
        if request.forbid_unknown:
            given["forbid_unknown"] = True
        settings = {**model.defaults.to_mapping(), **given}
        if "beam" not in given:
            settings["beam"] = max(settings["beam"], settings["nbest"])
        try:
            decoding = DecodingConfig.from_mapping(settings, origin="request")
        except NmtError as error:
            field = next((name for name in options if f"'{name}'" in str(error)), "")
            raise invalid(field, str(error)) from error
        if decoding.nbest > self.limits.nbest:
            raise invalid("nbest", f"{decoding.nbest} best translations; at most {self.limits.nbest}")
        if decoding.beam > self.limits.beam:
            raise invalid("beam", f"a beam of {decoding.beam}; at most {self.limits.beam}")
        if decoding.nbest > decoding.beam:
            raise invalid("nbest", f"{decoding.nbest} best translations need a beam of at least {decoding.nbest}")
        if decoding.max_length_ratio > self.limits.length_ratio:
            problem = f"max_length_ratio {decoding.max_length_ratio}; at most {self.limits.length_ratio}"
            raise invalid("max_length_ratio", problem)
        if not math.isfinite(decoding.length_normalization):
            raise invalid("length_normalization", "length_normalization must be a finite number")
        return decoding

    def _describe(self, place: _Place) -> pb.Model:
        model, limits = place.model, self.limits
        return pb.Model(
            name=place.name,
            signature=model.scorer.signature,
            surface_signature=_surface_signature(model),
            source_language=model.source_language,
            target_language=model.target_language,
            source_words=model.source_words,
            target_words=model.target_words,
            limits=pb.Limits(
                items=limits.items,
                characters=limits.characters,
                words=limits.words,
                beam=limits.beam,
                nbest=limits.nbest,
                message_bytes=limits.message_bytes,
                length_ratio=limits.length_ratio,
                streams=limits.streams,
                stream_requests=limits.stream_requests,
            ),
            attends=model.attends,
            vector_size=model.vector_size,
            default_beam=model.defaults.beam,
            device=place.engine.device,
        )

    def _checked(self, response: _Message) -> _Message:
        """The response, if it can be sent."""
        size = response.ByteSize()
        if size > self.limits.message_bytes:
            most = f"at most {self.limits.message_bytes >> 20}"
            problem = f"the answer would have {size >> 20} MiB, {most}; ask for fewer items in one request"
            raise invalid("", problem, reason="ANSWER_TOO_LARGE")
        return response


def _draining() -> Refusal:
    return unavailable("the server is shutting down; ask another one, or try again later", reason="DRAINING")


def _texts(_: _Place, nbest: Sequence[Translation]) -> list[str]:
    return [one.text for one in nbest]


def _deadline(context: Any) -> float | None:
    left = context.time_remaining()
    return None if left is None else time.monotonic() + left


def _as_refusal(error: Exception) -> Refusal:
    """What a client is told of an item that the model failed at."""
    if isinstance(error, Refusal):
        return error
    _log.error("an item failed", exc_info=error)
    if type(error).__name__ == "OutOfMemoryError":
        problem = "the device has not enough memory for this item"
        return Refusal(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()


def _check_columns(request: pb.RerankRequest) -> None:
    """Every hypothesis has a finite value for every column. Raises Refusal."""
    if not all(math.isfinite(weight) for weight in (request.model_weight, *(one.weight for one in request.columns))):
        raise invalid("columns", "weights must be finite numbers")
    for number, one in enumerate(request.lists):
        for place, hypothesis in enumerate(one.hypotheses):
            field = f"lists[{number}].hypotheses[{place}].values"
            if len(hypothesis.values) != len(request.columns):
                problem = f"{field} has {len(hypothesis.values)} numbers for {len(request.columns)} columns"
                raise invalid(field, problem)
            if not all(map(math.isfinite, hypothesis.values)):
                raise invalid(field, f"{field}: values must be finite numbers")


def _ranking(one: pb.NbestList, scores: Sequence[PairScore | Refusal], request: pb.RerankRequest) -> pb.Ranking:
    """The hypotheses in order of their totals, those without one last."""
    weights = [column.weight for column in request.columns]
    ranked = []
    for position, (hypothesis, score) in enumerate(zip(one.hypotheses, scores, strict=True)):
        if isinstance(score, Refusal):
            ranked.append(pb.RankedHypothesis(position=position, error=to_error(score)))
            continue
        products = [weight * value for weight, value in zip(weights, hypothesis.values, strict=True)]
        total = math.fsum([*products, request.model_weight * score.log_prob])
        ranked.append(pb.RankedHypothesis(position=position, total=total, log_prob=score.log_prob))
    ranked.sort(key=lambda each: (each.HasField("error"), -each.total))
    return pb.Ranking(hypotheses=ranked[: request.best or None])


_TEXT_FORMS: dict[int, TextForm] = {
    pb.TEXT_FORM_UNSPECIFIED: "prepared",
    pb.TEXT_FORM_SURFACE: "surface",
    pb.TEXT_FORM_RAW: "raw",
}


def _text_form(place: _Place, number: int) -> TextForm:
    """The form of the texts of a request, which the model has to understand."""
    if number not in _TEXT_FORMS:
        raise invalid("form", f"there is no form of text {number}")
    form = _TEXT_FORMS[number]
    try:
        place.model.scorer_of(form)
    except ConfigError as error:
        raise not_supported(str(error)) from error
    return form


def _surface_signature(model: ServedModel) -> str:
    """What scores of surface words depend on; empty where the model cannot read these."""
    try:
        return model.scorer_of("surface").signature
    except ConfigError:
        return ""
