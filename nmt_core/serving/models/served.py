"""The models of a server: what each can do on its device, as the work of an engine.

The keys of work are ``Scoring``, ``Encoding``, ``Decoding``, ``Sampling``, ``Finishing`` and ``Warming``: requests of
equal keys are done together. ``opening.open_served_model`` makes a served model of a model directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.base.words import SEPARATOR
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.forms import OTHER_FORMS, FormReader, FormScorer, TextForm
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.serving.engine.jobs import Unfinished
from nmt_core.serving.engine.work import BatchWork, StepDecoder, StepWork, Work
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import model_fields
from nmt_core.serving.methods.costs import Proportions
from nmt_core.serving.models.search import SearchItem
from nmt_core.text.processing import RawText
from nmt_core.v1 import nmt_pb2 as pb

_WEIGHTS = 2_000_000  # of attention, at once
_DRAWN = 1000.0  # tokens a second: what is expected of samples that all have other options

Vector = tuple[tuple[float, ...], int]
"""The numbers of a phrase, and its unknown words."""

ModelKind = Literal["neural", "hybrid"]
"""What makes the translations: the model alone, or with other systems."""


class Scoring(NamedTuple):
    """Pairs are scored, as the model reads them."""

    model: ServedModel
    per_word: bool = False
    attention: bool = False


class Encoding(NamedTuple):
    """Phrases are turned into vectors."""

    model: ServedModel


class Decoding(NamedTuple):
    """Sentences are translated; each has its own options."""

    model: ServedModel
    attention: bool = False


@dataclass(frozen=True)
class Sampling:
    """Translations of sentences are drawn; each has its own options. No tuple: it would equal a ``Decoding``."""

    model: ServedModel
    attention: bool = False


class SampleItem(NamedTuple):
    """A tokenised sentence, and how its translations are drawn."""

    text: str
    config: SamplingConfig


@dataclass(frozen=True)
class Finishing:
    """Second jobs of a search: what it has found becomes translations."""

    model: ServedModel


@dataclass(frozen=True)
class Warming:
    """Each kind of work is done once."""

    model: ServedModel


Key = Scoring | Encoding | Decoding | Sampling | Finishing | Warming
"""What work an engine is asked for, of which model."""

Finish = Callable[[Sequence[Any]], Sequence[Any]]
"""Makes answers of unfinished ones."""

Sampler = Callable[[Sequence[str]], Sequence["Sequence[Translation]"]]
"""Draws the samples of every sentence."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One model on one device; loaded again it is another one.

    ``decoder(attention)`` starts a search, ``finish()`` makes what completes its unfinished answers (None: it has
    none), ``sampler(config, attention)`` makes what draws (None: nothing does);
    ``proportions`` say what it costs, and how large its batch may be.
    ``copies`` says that it is of annotated text and writes words of the source.
    ``version`` changes with the model's files. ``encode`` is None for models without a vector of a
    phrase, ``vector_size`` its length; ``processor`` tokenises and detokenises (None: raw text is not
    supported); ``attends`` says whether there is attention, ``spells`` whether unknown words are spelled,
    ``unknowns`` what is written for <unk> where a request wants that; ``scorers`` makes the scorer for another form of
    text than the model reads (None: all are as the model reads them). ``source_factors`` is how many factors it reads
    beside each source word. A ``kind`` "hybrid" makes translations of other systems' too, by a search that requests do
    not change; all else is its neural model's. ``loaded`` are the models that it was made of.
    """

    scorer: PairScorer
    decoder: Callable[[bool], StepDecoder]
    finish: Callable[[], Finish] | None = None
    sampler: Callable[[SamplingConfig, bool], Sampler] | None = None
    encode: Callable[[Sequence[str]], Sequence[Vector]] | None = None
    processor: Callable[[], RawText] | None = None
    defaults: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)
    source_language: str = ""
    target_language: str = ""
    source_words: int = 0
    target_words: int = 0
    attends: bool = False
    spells: bool = False
    copies: bool = False
    unknowns: UnknownReplacement = dataclasses.field(default_factory=UnknownReplacement)
    vector_size: int = 0
    proportions: Proportions = dataclasses.field(default_factory=Proportions)
    version: str = ""
    scorers: Callable[[TextForm], PairScorer] | None = None
    source_factors: int = 0
    kind: ModelKind = "neural"
    loaded: Sequence[LoadedModel] = ()

    @functools.cached_property
    def signature(self) -> str:
        """What its numbers depend on, the arithmetic of this process included."""
        return self.scorer.signature

    @functools.cached_property
    def surface_signature(self) -> str:
        """What scores of surface words depend on; empty where the models cannot read these."""
        try:
            return self.scorer_of("surface").signature
        except ConfigError:
            return ""

    @functools.cached_property
    def raw_text(self) -> RawText:
        """What cuts raw text into words, and joins words. Raises ConfigError for a model without it."""
        if self.processor is None:
            raise ConfigError("the model takes tokenised text only")
        return self.processor()

    @functools.cached_property
    def fields(self) -> bytes:
        """What every answer says of the model."""
        return model_fields(self.version, self.signature)

    def work(self, key: Key) -> Work:
        """The work of a key."""
        match key:
            case Scoring(_, per_word, attention):
                score = functools.partial(self.scorer.score, per_word=per_word, attention=attention)
                return BatchWork("score", score, choose=_together if attention else None)
            case Encoding() if self.encode is not None:
                return BatchWork("encode", self.encode)
            case Decoding(_, attention):
                together = self.proportions.together
                return StepWork("translate", self.decoder(attention), most=together, second=Finishing(self))
            case Finishing() if self.finish is not None:
                return BatchWork("finish", self.finish(), choose=_first if self.kind == "hybrid" else None)
            case Sampling(_, attention) if self.sampler is not None:
                draw = functools.partial(_draw, self.sampler, attention)
                return BatchWork("sample", draw, choose=_drawn_alike, rate=_DRAWN)
            case Warming():
                return BatchWork("warm up", self.warm_up)
        raise AssertionError(f"no work of this kind: {key}")

    def scorer_of(self, form: TextForm) -> PairScorer:
        """The scorer for pairs of a form. Raises ConfigError where the models cannot read it."""
        return self.scorer if self.scorers is None else self.scorers(form)

    def reader_of(self, form: TextForm) -> FormReader | None:
        """What reads text of a form; None where the model reads it as it is. Raises ConfigError as ``scorer_of``."""
        scorer = self.scorer_of(form)
        return scorer.reader if isinstance(scorer, FormScorer) else None

    def warm_up(self, items: Sequence[None] = (None,)) -> Sequence[None]:
        """Do each kind of work once, and open what reads other forms of text; signatures take a moment, too."""
        _ = self.fields, self.surface_signature
        for form in OTHER_FORMS:
            with contextlib.suppress(NmtError):  # the call that needs it reports the error
                self.scorer_of(form)
        source = SEPARATOR.join(["a"] * (1 + self.source_factors))
        with contextlib.suppress(ConfigError):  # the call that needs scores reports the error
            self.scorer.score([SentencePair(source, "a")])
        decoder = self.decoder(False)
        decoder.admit([(0, SearchItem(source, self.defaults))])
        while not (found := decoder.step()):
            pass
        if self.finish is not None and isinstance(found[0][1], Unfinished):
            self.finish()([found[0][1].item])
        if self.encode is not None:
            self.encode([source])
        return items


def describe(name: str, model: ServedModel, limits: Limits, device: str) -> pb.Model:
    """What a client may want to know of a model."""
    return pb.Model(
        name=name,
        signature=model.signature,
        surface_signature=model.surface_signature,
        version=model.version,
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
            request_bytes=limits.request_bytes,
            length_ratio=limits.length_ratio,
            streams=limits.streams,
            stream_requests=limits.stream_requests,
            steps=limits.steps,
            memory_bytes=limits.memory_bytes,
            length_normalization=limits.length_normalization,
            client_streams=limits.client_streams,
        ),
        attends=model.attends,
        vector_size=model.vector_size,
        default_beam=model.defaults.beam,
        device=device,
        kind=pb.MODEL_KIND_HYBRID if model.kind == "hybrid" else pb.MODEL_KIND_NEURAL,
    )


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


def _first(items: Sequence[Any]) -> list[int]:
    """A sentence of a hybrid takes long enough by itself."""
    return [0]


def _drawn_alike(items: Sequence[SampleItem]) -> list[int]:
    """Places of the items with the options of the first."""
    return [place for place, item in enumerate(items) if item.config == items[0].config]


def _draw(
    sampler: Callable[[SamplingConfig, bool], Sampler], attention: bool, items: Sequence[SampleItem]
) -> Sequence[Sequence[Translation]]:
    """The samples of items with equal options."""
    return sampler(items[0].config, attention)([item.text for item in items])
