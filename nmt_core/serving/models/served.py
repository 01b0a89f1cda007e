"""The models of a server: what each can do on its device, as the work of an engine.

``opening.open_served_model`` makes a served model of a model directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.base.words import SEPARATOR
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.forms import OTHER_FORMS, FormReader, FormScorer, TextForm
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.serving.engine.work import BatchSpeed, BatchWork, StepDecoder, StepWork, Unfinished, Work
from nmt_core.serving.errors import not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.search import SearchItem
from nmt_core.text.processing import RawText
from nmt_core.v1 import nmt_pb2 as pb

_WEIGHTS = 2_000_000  # of attention, at once
_ALONE = 16  # tokens, less than a sentence has: it runs alone, and the next one is chosen among all clients after it

Vector = tuple[tuple[float, ...], int]
"""The numbers of a phrase, and its unknown words."""

Finish = Callable[[Sequence[Any]], Sequence[Any]]
"""Makes answers of unfinished ones."""


class Key(NamedTuple):
    """Work of one kind with one model: requests of equal keys are computed together.

    Options of sentences are in their items. ``finish`` are the second jobs of ``translate``, and ``warm
    up`` does each kind of work once.
    """

    model: ServedModel
    kind: Literal["score", "encode", "translate", "finish", "warm up"]
    attention: bool = False
    per_word: bool = False


class Proportions(NamedTuple):
    """What costs depend on besides the request: mean bytes of a target word, and units of the attention (0: none).

    ``together`` are the source positions times beam that are searched together, ``tokens_of_a_word`` what a model of
    annotated text writes for each word.
    """

    word_bytes: float = 8.0
    attention_units: int = 0
    together: int = 12_000
    tokens_of_a_word: int = 1


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One model on one device; loaded again it is another one.

    ``decoder(attention)`` starts a search, and ``finish`` completes its unfinished answers. ``encode`` makes vectors of
    phrases, ``processor`` opens what tokenises and detokenises; where one of them is None the model cannot do it.
    ``scorers`` makes the scorer for another form of text than the model reads (None: all are as the model reads them).
    ``unknowns`` says what is written for <unk> where a request wants that, and ``proportions`` what requests cost.
    ``description`` is what a client may want to know of it, as in the contract. A hybrid translates with other systems,
    too, by a search that requests do not change; all else is its neural model's. ``loaded`` are the models that it was
    made of. A Transformer has none, but the ``speed`` of its sentences, each of which runs as a whole.
    """

    scorer: PairScorer
    decoder: Callable[[bool], StepDecoder]
    finish: Finish | None = None
    encode: Callable[[Sequence[str]], Sequence[Vector]] | None = None
    processor: Callable[[], RawText] | None = None
    scorers: Callable[[TextForm], PairScorer] | None = None
    defaults: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)
    unknowns: UnknownReplacement = dataclasses.field(default_factory=UnknownReplacement)
    proportions: Proportions = dataclasses.field(default_factory=Proportions)
    description: pb.Model = dataclasses.field(default_factory=pb.Model)
    loaded: Sequence[LoadedModel] = ()
    speed: BatchSpeed | None = None

    @property
    def attends(self) -> bool:
        """Whether there is attention."""
        return self.description.attends

    @property
    def is_transformer(self) -> bool:
        """Whether it is a Transformer."""
        return self.speed is not None

    @functools.cached_property
    def spells(self) -> bool:
        """Whether unknown words are spelled."""
        return any(one.model.spells for one in self.loaded)

    @functools.cached_property
    def copies(self) -> bool:
        """Whether it is of annotated text, and writes words of the source."""
        return any(one.copying is not None for one in self.loaded)

    @functools.cached_property
    def source_factors(self) -> int:
        """How many factors it reads beside each source word."""
        return max((len(one.factors) for one in self.loaded), default=0)

    @functools.cached_property
    def surface_signature(self) -> str:
        """What scores of surface words depend on; empty where the models cannot read these."""
        try:
            return self.scorer_of("surface").signature
        except ConfigError:
            return ""

    @functools.cached_property
    def identity(self) -> bytes:
        """The end of every answer: fingerprint and signature, whose fields have the same numbers in each."""
        version, signature = self.description.version, self.scorer.signature
        return pb.ScoreResponse(fingerprint=version, signature=signature).SerializeToString()

    @functools.cached_property
    def raw_text(self) -> RawText:
        """What cuts raw text into words, and joins words. Raises RpcError for a model without it."""
        if self.processor is None:
            raise not_supported("the model takes tokenised text only")
        with _supported():
            return self.processor()

    def scorer_of(self, form: TextForm) -> PairScorer:
        """The scorer for pairs of a form. Raises ConfigError where the models cannot read it."""
        return self.scorer if self.scorers is None else self.scorers(form)

    def reader_of(self, form: TextForm) -> FormReader | None:
        """What reads text of a form; None where the model reads it as it is. Raises RpcError where it cannot."""
        with _supported():
            scorer = self.scorer_of(form)
        return scorer.reader if isinstance(scorer, FormScorer) else None

    def work(self, key: Key) -> Work:
        """The work of a key."""
        attention = key.attention
        match key.kind:
            case "score":
                score = functools.partial(self.scorer.score, per_word=key.per_word, attention=attention)
                return BatchWork(key.kind, score, choose=_together if attention else None)
            case "encode" if self.encode is not None:
                return BatchWork(key.kind, self.encode)
            case "translate":
                second = Key(self, "finish")
                most = _ALONE if self.is_transformer else self.proportions.together
                return StepWork(key.kind, self.decoder(attention), most=most, second=second)
            case "finish" if self.finish is not None:
                hybrid = self.description.kind == pb.MODEL_KIND_HYBRID  # a sentence takes long enough by itself
                return BatchWork(key.kind, self.finish, choose=(lambda items: [0]) if hybrid else None)
            case "warm up":
                return BatchWork(key.kind, self.warm_up)
        raise AssertionError(f"no work of this kind: {key}")

    def warm_up(self, items: Sequence[None] = (None,)) -> Sequence[None]:
        """Do each kind of work once, and open what reads other forms of text; signatures take a moment, too."""
        _ = self.identity, self.surface_signature
        for form in OTHER_FORMS:
            with contextlib.suppress(NmtError):  # the call that needs it reports the error
                self.scorer_of(form)
        source = SEPARATOR.join(["a"] * (1 + self.source_factors))
        with contextlib.suppress(ConfigError):  # the call that needs scores reports the error
            self.scorer.score([SentencePair(source, "a")])
        decoder = self.decoder(False)
        decoder.admit([(0, SearchItem(source, self.defaults))])
        while not (found := decoder.step()):
            time.sleep(decoder.waits)
        if self.finish is not None and isinstance(found[0][1], Unfinished):
            self.finish([found[0][1].value])
        if self.encode is not None:
            self.encode([source])
        return items


def describe(name: str, model: ServedModel, limits: Limits, device: str) -> pb.Model:
    """What a client may want to know of a model."""
    found = pb.Model(
        name=name,
        signature=model.scorer.signature,
        surface_signature=model.surface_signature,
        limits=pb.Limits(**{one.name: getattr(limits, one.name) for one in pb.Limits.DESCRIPTOR.fields}),
        default_beam=model.defaults.beam,
        device=device,
    )
    found.MergeFrom(model.description)
    return found


@contextlib.contextmanager
def _supported() -> Iterator[None]:
    """Within the block, what a model cannot do is an error of the request that wants it."""
    try:
        yield
    except ConfigError as error:
        raise not_supported(str(error)) from error


def _together(pairs: Sequence[SentencePair]) -> list[int]:
    """Places of pairs of like sizes, the smallest first, whose weights, padded, are few enough; one pair at least."""
    sizes = [(pair.source.count(" ") + 2, pair.target.count(" ") + 2) for pair in pairs]
    width, length, found = 0, 0, list[int]()
    for place in sorted(range(len(pairs)), key=lambda place: sizes[place]):
        width, length = max(width, sizes[place][0]), max(length, sizes[place][1])
        if found and width * length * (len(found) + 1) > _WEIGHTS:
            break
        found.append(place)
    return found
