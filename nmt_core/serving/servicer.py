"""The methods of the service: requests are checked, their cost is worked out, queued for a device, and answered.

What concerns a whole request is raised as a ``Refusal`` and becomes the status of the call; what
concerns one item is a ``Refusal`` in its place among the answers and becomes its ``Error``.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from google.rpc import code_pb2

from nmt_core.errors import ConfigError
from nmt_core.inference.search_config import DecodingConfig, SamplingConfig
from nmt_core.interfaces import PairScore
from nmt_core.serving import answers, convert
from nmt_core.serving.aside import Aside
from nmt_core.serving.background import in_own_thread
from nmt_core.serving.call import charge, current_client, messages_size, note
from nmt_core.serving.checks import check_cost, check_items, sample_problem, source_problem, text_problem
from nmt_core.serving.cost import Cost, translation_cost
from nmt_core.serving.decoding_options import decoding_config, searched_as
from nmt_core.serving.engine import Engine
from nmt_core.serving.limits import Limits
from nmt_core.serving.models import Decoding, Encoding, Key, Sampling, Scoring, ServedModel
from nmt_core.serving.pairs import ReadPair, read_pairs, restored, scoring_work
from nmt_core.serving.ranking import check_columns, ranking
from nmt_core.serving.refusal import Refusal, internal, not_supported, unavailable
from nmt_core.serving.running_search import SearchItem
from nmt_core.serving.scoring_options import form_reader
from nmt_core.serving.shares import Memory
from nmt_core.serving.streams import Answer, Stream
from nmt_core.serving.texts import count_words
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

if TYPE_CHECKING:
    from nmt_core.inference.translation import Translation
    from nmt_core.serving.metrics import Metrics

INTERACTIVE_ITEMS = 32
"""Requests of so many items at most are interactive unless they say otherwise."""

LONG = 16
"""An item that needs more than this part of a full batch is searched in a lane of its own."""

_TEXTS_AT_A_TIME = 50
_SMALL = 1 << 16  # bytes of a request and its answer that the event loop may work through itself
_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Load = Callable[[str], Mapping[str, ServedModel]]
"""Loads all models for one device."""


class _Place(NamedTuple):
    """A model, and the device that will do the work."""

    name: str
    model: ServedModel
    engine: Engine[Key]


class _Ask(NamedTuple):
    """What work is wanted, how urgently, and by when (seconds of ``time.monotonic``)."""

    key: Key
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
        self.memory = Memory(self.limits.memory_bytes)
        self.draining = False
        self._models: dict[str, dict[str, ServedModel]] = {}
        self._metrics = metrics
        self.engines = {
            device: Engine[Key](lambda key: key.model.work(key), device=device, observer=metrics, **queue)
            for device in devices
        }
        if metrics is not None:
            metrics.watch_memory(self.memory)
            for device, engine in self.engines.items():
                metrics.watch(device, engine)
        self._text = Aside("text")
        self._processors: dict[ServedModel, Any] = {}
        self._streams: set[Stream] = set()

    async def load(self, load: Load) -> None:
        """Take the models that ``load`` makes for each device, in place of those there were.

        They are loaded and do their work once, to be warm, while the old ones answer; what those have begun
        they finish. Raises what ``load`` raises, and then nothing has changed.
        """
        parts = [self._load_for(device, load) for device in self.engines]
        self._models = dict(zip(self.engines, await asyncio.gather(*parts), strict=True))
        present = {model for models in self._models.values() for model in models.values()}
        self._processors = {}
        for engine in self.engines.values():
            engine.forget(lambda key: key.model not in present)

    async def _load_for(self, device: str, load: Load) -> dict[str, ServedModel]:
        begin = time.monotonic()
        models = dict(await in_own_thread(lambda: load(device), name=f"load {device}"))
        for model in models.values():
            await self.engines[device].in_thread(model.warm_up)
        if self._metrics is not None:
            self._metrics.load_seconds.labels(device).set(time.monotonic() - begin)
        return models

    @property
    def works(self) -> bool:
        """The models are loaded, and a device that answers in time is there."""
        return self.loaded and bool(self._working_devices())

    @property
    def loaded(self) -> bool:
        """The models are there."""
        return bool(self._models)

    def begin_drain(self) -> None:
        """Read nothing more from streams; what was read is answered."""
        self.draining = True
        for stream in self._streams:
            stream.stop_reading()

    async def close(self, timeout: float = 60.0) -> None:
        """Finish what was accepted, in that time."""
        for engine in self.engines.values():
            await engine.close(timeout)
        self._text.close()

    # ---- methods

    async def Translate(self, request: pb.TranslateRequest, context: Any) -> bytes:
        """See the .proto."""
        return await self._translate(request, _deadline(context))

    async def Score(self, request: pb.ScoreRequest, context: Any) -> bytes:
        """See the .proto."""
        return await self._score(request, _deadline(context))

    async def TranslateStream(self, requests: Any, context: Any) -> None:
        """See the .proto."""
        deadline = _deadline(context)
        await self._stream(
            requests, context, Answer(lambda one: self._translate(one, deadline), pb.TranslateStreamResponse)
        )

    async def ScoreStream(self, requests: Any, context: Any) -> None:
        """See the .proto."""
        deadline = _deadline(context)
        await self._stream(requests, context, Answer(lambda one: self._score(one, deadline), pb.ScoreStreamResponse))

    async def Rerank(self, request: pb.RerankRequest, context: Any) -> bytes:
        """See the .proto."""
        place = self._find(request.model)
        count = sum(len(one.hypotheses) for one in request.lists)
        check_items(self.limits, max(count, len(request.lists)), "lists")
        await self._aside(check_columns, request, self.limits)
        reader = form_reader(place.model, request.form)
        ask = self._ask(Scoring(place.model), request.priority, count, _deadline(context))
        groups = ((one.source, (each.target for each in one.hypotheses)) for one in request.lists)
        pairs = await self._listed(reader, read_pairs(groups, "lists", self.limits, reader, place.model.source_factors))
        scores = await self._scores(place, ask, pairs)
        return self._checked(await self._aside(_rerank_answer, request, scores))

    async def Encode(self, request: pb.EncodeRequest, context: Any) -> bytes:
        """See the .proto."""
        place = self._find(request.model)
        if place.model.encode is None:
            raise not_supported(f"the model {place.name!r} has no single vector of a phrase; an rnnencdec has")
        check_items(self.limits, len(request.texts), "texts")
        answer = (4 * place.model.vector_size + 64) * len(request.texts)
        self._accept(Cost(answer, 10 * answer, len(request.texts)))
        texts = await self._tokenized(place, request.texts, raw=request.raw)
        ask = self._ask(Encoding(place.model), request.priority, len(texts), _deadline(context))
        words = await self._aside(_words, texts)
        found = await self._do(place, ask, texts, [count + 1 for count in words])
        return self._checked(await self._aside(answers.encode_answer, found))

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> bytes:
        """See the .proto."""
        models = [self._describe(self._find(name)) for name in self._names()]
        return pb.ListModelsResponse(models=models).SerializeToString()

    async def GetModel(self, request: pb.GetModelRequest, context: Any) -> bytes:
        """See the .proto."""
        return pb.GetModelResponse(model=self._describe(self._find(request.name))).SerializeToString()

    # ---- what streams and single calls have in common

    async def _translate(self, request: pb.TranslateRequest, deadline: float | None) -> bytes:
        place = self._find(request.model)
        config = decoding_config(request, place.model.defaults, self.limits, fixed=place.model.kind == "hybrid")
        replaced = request.replace_unknown and not place.model.copies  # these do it in any case
        attention = request.with_attention or replaced
        if place.model.copies and config.forbid_unknown:
            raise not_supported(f"forbid_unknown: {place.name!r} writes unknown words as places of the source")
        if replaced and not place.model.attends:
            raise not_supported(f"replace_unknown needs a model with attention; {place.name!r} has none")
        if request.replace_unknown and place.model.spells:
            raise not_supported(f"replace_unknown is for models that write <unk>; {place.name!r} spells unknown words")
        size = searched_as(config)
        check_items(self.limits, len(request.texts), "texts", answers=size.nbest)
        texts = await self._tokenized(place, request.texts, raw=request.raw)
        words = await self._aside(_words, texts)
        sizes = [(n, 4 * len(text)) for n, text in zip(words, texts, strict=True) if not isinstance(text, Refusal)]
        answered = request.with_attention and place.model.attends
        count = functools.partial(translation_cost, answered=answered, kept=attention)
        self._accept(await self._aside(count, sizes, size, place.model.proportions))
        key, items = _work(place, config, attention, texts)
        ask = self._ask(key, request.priority, len(texts), deadline)
        found = await self._do(place, ask, items, [(count + 2) * size.beam for count in words])
        shown = await self._shown(place, found, replaced=replaced, raw=request.raw)
        self._count_words(place.name, "read", words)
        self._count_words(place.name, "written", [len(one[0].words) for one in found if not isinstance(one, Refusal)])
        return self._checked(await self._aside(answers.translate_answer, found, shown, answered))

    async def _shown(self, place: _Place, found: Sequence[Any], *, replaced: bool, raw: bool) -> list[list[str]]:
        """The texts of all translations, as the request wants them."""
        show = self._replaced if replaced else _texts
        shown = await self._aside(lambda: [[] if isinstance(one, Refusal) else show(place, one) for one in found])
        if raw:
            processor = await self._processor(place)
            shown = [await self._in_text_thread(processor.detokenize, texts) for texts in shown]
        return shown

    async def _score(self, request: pb.ScoreRequest, deadline: float | None) -> bytes:
        place = self._find(request.model)
        count = len(request.pairs) + sum(len(group.targets) for group in request.groups)
        check_items(self.limits, max(count, len(request.groups)), "pairs")
        reader = form_reader(place.model, request.form)
        read = read_pairs(convert.groups_of(request), "pairs", self.limits, reader, place.model.source_factors)
        pairs = await self._listed(reader, read)
        key = Scoring(place.model, request.per_word, request.with_attention and place.model.attends)
        ask = self._ask(key, request.priority, len(pairs), deadline)
        scores = await self._scores(place, ask, pairs)
        if reader is not None:
            scores = await self._listed(reader, restored(scores, pairs, reader))
        return self._checked(await self._aside(answers.score_answer, scores, request))

    async def _scores(self, place: _Place, ask: _Ask, pairs: Sequence[ReadPair | Refusal]) -> list[PairScore | Refusal]:
        """As the model reads the pairs."""
        key = ask.key
        assert isinstance(key, Scoring)
        count = functools.partial(scoring_work, per_word=key.per_word, attention=key.attention)
        work = await self._aside(count, pairs)
        self._accept(work.cost)
        found = await self._do(place, ask, work.items, work.tokens)
        self._count_words(place.name, "scored", [work.words])
        return found

    async def _stream(self, requests: Any, context: Any, answer: Answer) -> None:
        stream = Stream(context, answer, self.limits, self.memory)
        self._streams.add(stream)
        try:
            if not self.draining:
                await stream.run(requests)
        finally:
            self._streams.discard(stream)
        if self.draining:
            raise _draining()

    # ---- the way to the device and back

    def _accept(self, cost: Cost) -> None:
        """Raises Refusal for a request that costs too much, before anything of it is done."""
        check_cost(self.limits, answer=cost.answer, steps=cost.steps)
        charge(cost.memory, answer=cost.answer)

    async def _do(self, place: _Place, ask: _Ask, items: Sequence[Any], tokens: Sequence[int]) -> list[Any]:
        """An answer or a Refusal for every item of so many tokens; an item that is a Refusal already keeps it."""
        note(model=place.name, items=len(items))
        found = list(items)
        wanted = [index for index, item in enumerate(items) if not isinstance(item, Refusal)]
        most = place.model.proportions.together // LONG if isinstance(ask.key, Decoding) else None
        long = [index for index in wanted if most is not None and tokens[index] > most]
        short = [index for index in wanted if most is None or tokens[index] <= most]
        parts = [(lane, chosen) for lane, chosen in ((ask.lane, short), ("long", long)) if chosen]
        submit = functools.partial(place.engine.submit, ask.key, client=current_client(), deadline=ask.deadline)
        parts_found = await _all(
            submit([items[index] for index in chosen], tokens=[tokens[index] for index in chosen], lane=lane)
            for lane, chosen in parts
        )
        for (_, chosen), part in zip(parts, parts_found, strict=True):
            for index, answer in zip(chosen, part, strict=True):
                found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
        return found

    def _ask(self, key: Key, priority: int, items: int, deadline: float | None) -> _Ask:
        few = priority == pb.PRIORITY_UNSPECIFIED and items <= INTERACTIVE_ITEMS
        return _Ask(key, "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk", deadline)

    async def _tokenized(self, place: _Place, texts: Sequence[str], *, raw: bool) -> list[str | Refusal]:
        """Tokenised texts, or what is wrong with them."""
        factors = 0 if raw else place.model.source_factors
        checked = await self._aside(
            lambda: [source_problem(self.limits, text, "texts", factors=factors) or text for text in texts]
        )
        if not raw:
            return checked
        processor = await self._processor(place)

        def tokenize(text: str | Refusal) -> str | Refusal:
            if isinstance(text, Refusal):
                return text
            tokenized: str = processor.tokenize(text)
            return text_problem(self.limits, tokenized, "texts") or tokenized

        return await self._in_text_thread(tokenize, checked)

    async def _processor(self, place: _Place) -> Any:
        """The text processing of a model, made once."""
        if place.model.processor is None:
            raise not_supported(f"the model {place.name!r} takes tokenised text only")
        if place.model not in self._processors:
            try:
                self._processors[place.model] = await self._text.call(place.model.processor)
            except ConfigError as error:
                raise not_supported(str(error)) from error
        return self._processors[place.model]

    async def _in_text_thread(self, change: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Change every item; others may come in between."""
        changed: list[_Result] = []
        for start in range(0, len(items), _TEXTS_AT_A_TIME):
            part = items[start : start + _TEXTS_AT_A_TIME]
            changed += await self._text.call(_list, map(change, part))
        return changed

    async def _listed(self, reader: Any, items: Iterable[_Item]) -> list[_Item]:
        """All of them; of a large request, and of text that is cut, beside the event loop."""
        if reader is None and messages_size() <= _SMALL:
            return list(items)
        found, rest = list[_Item](), iter(items)
        while part := await self._text.call(_list, itertools.islice(rest, _TEXTS_AT_A_TIME)):
            found += part
        return found

    async def _aside(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function; for a large request or answer beside the event loop: others are answered meanwhile."""
        if messages_size() <= _SMALL:
            return function(*arguments)
        return await self._text.call(function, *arguments)

    def _replaced(self, place: _Place, nbest: Sequence[Translation]) -> list[str]:
        """The texts without <unk>, which are counted."""
        written = [convert.with_unknown_replaced(one, place.model.unknowns) for one in nbest]
        self._count_words(place.name, "copied", (counts.copied for _, counts in written))
        self._count_words(place.name, "translated", (counts.translated for _, counts in written))
        return [text for text, _ in written]

    def _count_words(self, model: str, kind: str, words: Iterable[int]) -> None:
        if self._metrics is not None:
            self._metrics.words.labels(model, kind).inc(sum(words))

    # ---- models

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
        device = min(self._working_devices() or self.engines, key=self._load_of)
        return _Place(name, self._models[device][name], self.engines[device])

    def _working_devices(self) -> list[str]:
        return [
            device
            for device, engine in self.engines.items()
            if not engine.down and engine.stuck_for < self.limits.stuck_seconds
        ]

    def _load_of(self, device: str) -> tuple[int, int]:
        """What waits there, and of equally short queues what runs."""
        engine = self.engines[device]
        return engine.waiting_tokens, engine.running_items

    def _describe(self, place: _Place) -> pb.Model:
        return convert.describe(place.name, place.model, self.limits, place.engine.device)

    def _checked(self, response: bytes) -> bytes:
        """The response, if it can be sent: words may be longer than their mean length."""
        check_cost(self.limits, answer=len(response), steps=0)
        return response


async def _all(parts: Iterable[Any]) -> list[Any]:
    """The results of coroutines; when one fails, or nobody waits any more, the others are called off."""
    coroutines = list(parts)
    if len(coroutines) == 1:  # as nearly always: no task of its own
        return [await coroutines[0]]
    tasks = [asyncio.ensure_future(part) for part in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _rerank_answer(request: pb.RerankRequest, scores: Sequence[PairScore | Refusal]) -> bytes:
    ends = list(itertools.accumulate(len(one.hypotheses) for one in request.lists))
    parts = (scores[start:end] for start, end in itertools.pairwise([0, *ends]))
    return answers.rerank_answer(ranking(one, part, request) for one, part in zip(request.lists, parts, strict=True))


def _list(items: Iterable[_Item]) -> list[_Item]:
    return list(items)


def _words(texts: Sequence[str | Refusal]) -> list[int]:
    return [0 if isinstance(text, Refusal) else count_words(text) for text in texts]


def _work(
    place: _Place, config: DecodingConfig | SamplingConfig, attention: bool, texts: Sequence[str | Refusal]
) -> tuple[Key, list[Any]]:
    """What is done with the texts, and each as an item of it, or why it is none."""
    if isinstance(config, DecodingConfig):
        items = [text if isinstance(text, Refusal) else SearchItem(text, config) for text in texts]
        return Decoding(place.model, attention), items
    if place.model.sampler is None:
        raise not_supported(f"samples of the model {place.name!r} cannot be drawn")
    drawn = [text if isinstance(text, Refusal) else sample_problem(config, text) or text for text in texts]
    return Sampling(place.model, config, attention), drawn


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
