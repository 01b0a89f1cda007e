"""From what a user writes on the command line to a neural decoder of n-best lists, or a generator of phrases.

The specs are those of ``smt_bridge.scorers``: model folders, ensembles of them, and running servers. What a branch
needs (PyTorch, gRPC) is imported inside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt_core.base.errors import ConfigError, ServiceError
from nmt_core.base.interfaces import NgramGuidance, PairScorer
from nmt_core.base.words import split_words
from nmt_core.text.nbest_line import nbest_line
from nmt_core.text.processing import RawText
from nmt_core.text.unknown_share import UnknownShare, usual_share
from smt_bridge.scorers import REMOTE, Load, ScorerOptions, load_folder, model_folders, server_address

if TYPE_CHECKING:
    from nmt_core.inference.guided_search import GuidedTranslator

FEATURE = "NMT0"
_ITEMS = 4000  # targets of one request
_PIECES = 4  # of a word, that a model of subwords may write


class SearchOptions(NamedTuple):
    """How a neural model searches: ``beam`` hypotheses, the ``nbest`` best of them; ``<unk>`` may be forbidden."""

    beam: int = 12
    nbest: int = 12
    forbid_unknown: bool = True


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


class SurfaceWords(NamedTuple):
    """From words of a Moses system to what a model reads, and from what it writes to such words."""

    read: Callable[[str], str] = str
    write: Callable[[str], str] = str


def surface_words(models: Sequence[Any]) -> SurfaceWords:
    """Of loaded models. Raises ConfigError where members of an ensemble were prepared differently."""
    from nmt_core.model_directory.raw_text import shared_preparation
    from nmt_core.text.vocabulary import joint_vocabulary

    preparation = shared_preparation(models)
    if preparation is None:
        return SurfaceWords()
    reader = preparation.open_surface("source", joint_vocabulary([model.source for model in models]))
    return SurfaceWords(lambda sentence: reader.read(sentence).text, preparation.open_words("target").undo)


def joins_words(models: Sequence[Any]) -> bool:
    """Whether they write parts of words with a mark behind each but the last, so that advice about words is joined."""
    from nmt_core.model_directory.raw_text import shared_preparation

    preparation = shared_preparation(models)
    return preparation is not None and preparation.joins("target")


def check_takes_advice(models: Sequence[Any]) -> None:
    """Raise ConfigError for models that write parts of words of which advice cannot be, or in another order."""
    from nmt_core.inference.lines import check_follows_guidance
    from nmt_core.model_directory.raw_text import shared_preparation

    preparation = shared_preparation(models)
    if preparation is not None and preparation.cuts("target") and not joins_words(models):
        problem = "writes parts of words without a mark behind each but the last, of which advice can say nothing"
        raise ConfigError(f"{models[0].folder} {problem}; tune, or use another model")
    check_follows_guidance(models[0].target_order, models[0].copying, models[0].folder)


class LocalDecoder:
    """A model, or an ensemble, in this process; words are a Moses system's, whatever the model reads.

    ``warn`` is told, once, where the model does not know many of the words.
    """

    def __init__(self, translator: Any, warn: Callable[[str], None]) -> None:
        self._translator, self._words = translator, surface_words(translator.models)
        self._joins = joins_words(translator.models)
        names = " + ".join(loaded.folder for loaded in translator.models)
        serve = any(loaded.unknown_words_serve for loaded in translator.models)
        usual = usual_share(loaded.source for loaded in translator.models)
        self._unknown = UnknownShare(names, warn, hint="", serve=serve, usual=usual)

    def nbest(self, sentences: Sequence[str], advice: Sequence[NgramGuidance | None] = ()) -> list[list[str]]:
        """As ``nmt-core decode --nbest`` writes them, with advice for each or none; no list for a blank sentence."""
        from nmt_core.inference.lines import SourceLine

        about_words = [one and one._replace(joined=self._joins) for one in advice]
        asked = itertools.zip_longest(map(self._words.read, sentences), about_words)
        found = self._translator.translate([SourceLine(text, advice=one) for text, one in asked])
        words = [word for translations in found if translations for word in translations[0].source_words]
        self._unknown.add(words=len(words), unknown=sum(word not in self._translator.source for word in words))
        return [
            nbest_lines(number, translations, self._words.write) if split_words(sentence) else []
            for number, (sentence, translations) in enumerate(zip(sentences, found, strict=True))
        ]

    def check_takes_advice(self) -> None:
        """As the function of that name, for the models."""
        check_takes_advice(self._translator.models)

    def finish(self) -> None:
        """Say what there is to be said of the words of a text that is not long."""
        self._unknown.finish()

    def raw_text(self) -> RawText:
        """Moses' tokeniser and detokeniser for the model's languages."""
        from nmt_core.text.processing import TextProcessor

        return TextProcessor(self._translator.models[0].text)


class LocalGenerator:
    """A ``PhraseGenerator`` of a model, or an ensemble, in this process; words are a Moses system's."""

    def __init__(self, translator: Any) -> None:
        self._translator, self._words = translator, surface_words(translator.models)

    def generate(self, sources: Sequence[str]) -> list[list[str]]:
        """As the protocol has it."""
        found = self._translator.translate([self._words.read(source) for source in sources])
        return [[self._words.write(one.text) for one in translations] for translations in found]


class RemoteGenerator:
    """The same of a model of a running server. Raises ConfigError for a model that does not read words."""

    def __init__(self, client: Any, options: GenerationOptions) -> None:
        from nmt_core.serving.client.client import PRIORITIES

        described = next(one for one in client.models() if one.name == client.model)
        if described.surface_signature != described.signature:
            raise ConfigError(f"the model {client.model} reads pieces of words: generate with its folder instead")
        self._client = client
        window = max(1, min(described.limits.items, _ITEMS) // (options.samples or options.nbest))
        self._options = {**options.request, "priority": PRIORITIES["bulk"], "window": window}

    def generate(self, sources: Sequence[str]) -> list[list[str]]:
        """As the protocol has it. Raises ServiceError."""
        found = []
        for source, answer in zip(sources, self._client.translate(sources, **self._options), strict=True):
            if answer.HasField("error"):
                raise ServiceError(f"{answer.error.message} (source {source[:60]!r})")
            found.append([one.text for one in answer.translations])
        return found


class RemoteDecoder:
    """A model of a running server, whose log says where it does not know many of the words."""

    def __init__(self, client: Any, options: SearchOptions) -> None:
        self._client, self._options = client, options

    def nbest(self, sentences: Sequence[str]) -> list[list[str]]:
        """As ``LocalDecoder.nbest``."""
        options = self._options
        asked = {"beam": options.beam, "nbest": options.nbest, "forbid_unknown": options.forbid_unknown}
        found = self._client.translate(sentences, **asked)
        return [
            nbest_lines(number, answer.translations, str) if split_words(sentence) else []
            for number, (sentence, answer) in enumerate(zip(sentences, found, strict=True))
        ]

    def finish(self) -> None:
        """Nothing is left to be said."""


def open_decoder(
    spec: str,
    search: SearchOptions,
    options: ScorerOptions,
    warn: Callable[[str], None],
    *,
    load: Load = load_folder,
) -> LocalDecoder | RemoteDecoder:
    """The decoder that ``spec`` names, which may ``warn``; ``load`` loads folders. Raises as ``open_scorer``."""
    if spec.startswith(REMOTE):
        from nmt_core.serving.client.client import NmtClient, describe_model
        from nmt_core.serving.one_model import OneModel

        address, model = server_address(spec)
        described = describe_model(address, model)
        return RemoteDecoder(NmtClient(address, model=described.name, one_model=OneModel(described)), search)
    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.inference.translator import Translator

    models = load_models(spec, options._replace(threads=None), load=load)  # nobody else is at work
    config = DecodingConfig.from_mapping(search._asdict(), origin="the neural model's search")
    return LocalDecoder(Translator(models, config=config), warn)


def open_searcher(
    spec: str, options: ScorerOptions, *, beam: int, nbest: int, widest: int = 0, load: Load = load_folder
) -> GuidedTranslator:
    """What searches in graphs with the models that ``spec`` names. Raises ConfigError for models that cannot."""
    if spec.startswith(REMOTE):
        raise ConfigError(f"{spec}: a server does not search in graphs; give the folder of its model")
    from nmt_core.inference.guided_search import GuidedTranslator

    models = load_models(spec, options._replace(threads=None), load=load)
    return GuidedTranslator(models, beam=beam, nbest=nbest, widest=widest)


def open_generator(
    spec: str, generation: GenerationOptions, options: ScorerOptions
) -> tuple[LocalGenerator | RemoteGenerator, PairScorer]:
    """The generator that ``spec`` names, and the scorer of the same model; raises as ``open_scorer``."""
    if spec.startswith(REMOTE):
        from nmt_core.serving.client.client import NmtClient, RemotePairScorer

        address, model = server_address(spec)
        scorer = RemotePairScorer(address, model=model or None)
        client = NmtClient(address, model=scorer.model, one_model=scorer.one_model)
        return RemoteGenerator(client, generation), scorer
    from nmt_core.inference.scoring.forms import scorer_of_form
    from nmt_core.inference.scoring.pair_scorer import ModelPairScorer, choose_softmax
    from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
    from nmt_core.inference.translator import Translator
    from nmt_core.model_directory.raw_text import shared_preparation

    config: DecodingConfig | SamplingConfig
    if generation.samples is None:
        config = DecodingConfig.from_mapping(generation.request, origin="the search")
    else:
        config = SamplingConfig.from_mapping({**generation.request, "by_text": True}, origin="the samples")
    models = load_models(spec, options)
    preparation = shared_preparation(models)
    if preparation is not None and preparation.cuts("target"):
        config = config.lengthened(_PIECES)
    local = ModelPairScorer(models, softmax=choose_softmax(options.softmax))
    return LocalGenerator(Translator(models, config=config)), scorer_of_form(models, local, "surface")


def load_models(spec: str, options: ScorerOptions, *, load: Load = load_folder) -> list[Any]:
    """The models of a local spec."""
    folders = model_folders(spec)
    import torch

    from nmt_core.model_directory import loaded_model as checkpoint

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return checkpoint.load_models(folders, device=options.device, dtype=options.dtype, load=load)


def nbest_lines(number: int, translations: Iterable[Any], write: Callable[[str], str]) -> list[str]:
    """The list of the sentence of this number; ``write`` makes words of a text that a model wrote."""
    return [nbest_line(number, write(one.text), f"{FEATURE}= {one.log_prob:.6f}", one.score) for one in translations]
