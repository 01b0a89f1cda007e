"""Targets of phrases, searched for or drawn, by a model in this process or that of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import PairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.ensembles import shared_preparation
from scripts.experiments.cho2014.specs import described
from smt_bridge.models import Local, ModelOptions, Remote, open_model, surface_words

_ITEMS = 4000  # targets of one request
_PIECES = 4  # of a word, that a model of subwords may write


class GenerationOptions(NamedTuple):
    """How targets of phrases are generated: the ``nbest`` best of a beam, or, where there are any, ``samples``.

    A target may have up to ``most_words`` words and one, of a model of subwords four times as many pieces, but never
    ``<unk>``.
    """

    beam: int = 12
    nbest: int = 10
    samples: int | None = None
    seed: int = 1
    temperature: float = 1.0
    most_words: int = 7

    @property
    def request(self) -> dict[str, Any]:
        """The options as a model, here or on a server, takes them; ten words more than the ratio are always allowed."""
        how = (
            {"beam": self.beam, "nbest": self.nbest}
            if self.samples is None
            else {"samples": self.samples, "seed": self.seed, "temperature": self.temperature}
        )
        lengths = {"length_normalization": 0.0, "max_length_ratio": min(max(0.0, self.most_words - 9.0), 100.0)}
        return {**how, **lengths, "forbid_unknown": True}


class LocalGenerator:
    """A ``PhraseGenerator`` of a model, or an ensemble, in this process; words are a Moses system's."""

    def __init__(self, model: Local, options: GenerationOptions) -> None:
        self._translator = Translator(model.models, config=_config(model, options))
        self._words = surface_words(model.models)

    def generate(self, sources: Sequence[str]) -> list[list[str]]:
        """As the protocol has it."""
        found = self._translator.translate([self._words.read(source) for source in sources])
        return [[self._words.write(one.text) for one in translations] for translations in found]


class RemoteGenerator:
    """The same of a model of a running server. Raises ConfigError for a model that does not read words."""

    def __init__(self, model: Remote, options: GenerationOptions) -> None:
        self._client = model.client
        window = max(1, min(described(model).limits.items, _ITEMS) // (options.samples or options.nbest))
        self._options = {**options.request, "priority": "PRIORITY_BULK", "window": window}

    def generate(self, sources: Sequence[str]) -> list[list[str]]:
        """As the protocol has it. Raises ServiceError."""
        found = []
        for source, answer in zip(sources, self._client.translate(sources, **self._options), strict=True):
            if answer.HasField("error"):
                raise ServiceError(f"{answer.error.message} (source {source[:60]!r})")
            found.append([one.text for one in answer.translations])
        return found


def open_generator(
    spec: str, generation: GenerationOptions, options: ModelOptions
) -> tuple[LocalGenerator | RemoteGenerator, PairScorer]:
    """The generator that ``spec`` names, and the scorer of the same model; raises as ``open_model``."""
    model = open_model(spec, options)
    if isinstance(model, Remote):
        return RemoteGenerator(model, generation), model
    return LocalGenerator(model, generation), model


def _config(model: Local, generation: GenerationOptions) -> DecodingConfig | SamplingConfig:
    config: DecodingConfig | SamplingConfig
    if generation.samples is None:
        config = DecodingConfig.from_mapping(generation.request, origin="the search")
    else:
        config = SamplingConfig.from_mapping({**generation.request, "by_text": True}, origin="the samples")
    preparation = shared_preparation(model.models)
    return config.lengthened(_PIECES) if preparation is not None and preparation.cuts("target") else config
