"""Neural models of the bridge: in this process (of several folders an ensemble, or a Transformer), or on a server.

All score pairs and make lists. They take words of a Moses system; a model of subwords cuts them as it needs, and
its numbers are for the words. What a branch needs (PyTorch, gRPC) is imported inside it.

What a user writes for a model:

======================== ====================================================
``DIR``                  the model in a folder
``DIR,DIR``              an ensemble: the models' word probabilities are averaged
``grpc:HOST:PORT``       a running ``nmt-core serve`` and its default model
``grpc:HOST:PORT/MODEL`` the same, and the model of that name
``ct2:DIR``              a Transformer in a folder that a converter of CTranslate2 wrote
``hf:DIR``               a Transformer in a folder of the library transformers
======================== ====================================================
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramGuidance, PairScore, PairScorer, SentencePair
from nmt_core.base.words import factors_read, split_words, whole_number
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.processing import RawText
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.transformer import CT2, HF, TRANSFORMERS
from smt_bridge.moses_lines import BLANKS
from smt_bridge.nbest.entry import NbestEntry

REMOTE = "grpc:"


class ModelOptions(NamedTuple):
    """How a model in a folder is used; a server has its own ways.

    Scores with another ``dtype`` than float32 or another ``softmax`` than full are not exact, and their signature says
    so. ``threads`` is for CTranslate2; 0 leaves its choice.
    """

    device: str = "auto"
    dtype: str = "float32"
    softmax: Literal["full", "none"] = "full"
    threads: int = 0


def model_folders(spec: str) -> list[str]:
    """The folders of a local spec; raises ConfigError where one is not there."""
    folders = spec.split(",")
    for folder in folders:
        if not os.path.isdir(folder):
            raise ConfigError(
                f"{folder or spec!r} is not a model folder; expected DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT"
            )
    return folders


def server_address(spec: str) -> tuple[str, str]:
    """HOST:PORT and the model's name, empty for the default one; raises ConfigError for a malformed spec."""
    address, _, model = spec.removeprefix(REMOTE).partition("/")
    host, _, port = address.rpartition(":")
    if not host or whole_number(port) is None:
        raise ConfigError(f"{spec!r} is not an address; expected grpc:HOST:PORT or grpc:HOST:PORT/MODEL")
    return address, model


def count_jobs(args: argparse.Namespace, specs: list[str]) -> int:
    """How many worker processes to use.

    Raises ConfigError, and ModuleNotFoundError where the models of ``specs`` need a package that is not installed.
    """
    packages = {_package_of(spec) for spec in specs}
    for package in sorted(packages):
        if importlib.util.find_spec(package) is None:  # found before workers are started
            raise ModuleNotFoundError(name=package)
    devices = list_devices(args)
    if args.jobs is not None:
        return int(args.jobs)
    if packages <= {"grpc"}:
        return 1
    if devices == ["cpu"]:
        return len(os.sched_getaffinity(0))
    from nmt_core.device import choose_device

    return len({choose_device(name) for name in devices})


def _package_of(spec: str) -> str:
    packages = {REMOTE: "grpc", CT2: "ctranslate2", HF: "transformers"}
    return next((package for start, package in packages.items() if spec.startswith(start)), "torch")


def list_devices(args: argparse.Namespace) -> list[str]:
    """The devices to use; with several GPUs, all. Raises ConfigError for a list of something else."""
    if args.devices:
        names = [name.strip() for name in args.devices.split(",")]
        wrong = next((name for name in names if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", name)), None)
        if wrong is not None:
            expected = f"expected auto, cpu, cuda or cuda:N, with commas, not '{wrong}'"
            raise ConfigError(f"--devices {args.devices}: {expected}")
        return names
    if not os.path.exists("/dev/nvidiactl"):  # without a GPU torch, which takes seconds to load, is not asked
        return ["cpu"]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def start_worker(args: argparse.Namespace, worker: int, specs: Iterable[str]) -> ModelOptions:
    """Prepare this process to work with the models of ``specs``, as worker number ``worker``; what it opens them with.

    Workers take devices in turn. On a CPU each has one thread, so that all work alike.
    """
    keep_memory_of_tensors()
    devices = list_devices(args)
    device = devices[worker % len(devices)]
    if device != "cpu":
        return ModelOptions(device, args.dtype, args.softmax)
    if {_package_of(spec) for spec in specs} & {"torch", "transformers"}:
        import torch

        torch.set_num_threads(1)
    return ModelOptions(device, args.dtype, args.softmax, threads=1)


FEATURE = "NMT0"


class SearchOptions(NamedTuple):
    """How a neural model searches: ``beam`` hypotheses, the ``nbest`` best of them; ``<unk>`` may be forbidden."""

    beam: int = 12
    nbest: int = 12
    forbid_unknown: bool = True


class SurfaceWords(NamedTuple):
    """From words of a Moses system to what a model reads, and from what it writes to such words."""

    read: Callable[[str], str] = str
    write: Callable[[str], str] = str


class Local:
    """A model, or an ensemble, in this process.

    ``warn`` is called once where the model does not know many of the words that it translates.
    """

    def __init__(
        self,
        spec: str,
        options: ModelOptions | None = None,
        search: SearchOptions | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folders, self._warn = model_folders(spec), warn
        self._options, self._search = options or ModelOptions(), search or SearchOptions()
        from nmt_core.model_directory.loaded_model import load_models

        self.models = load_models(self._folders, device=self._options.device, dtype=self._options.dtype)

    @property
    def usual_share(self) -> float:
        """The share of unknown words that is usual for its two vocabularies; 0 if unsaid."""
        return max(words.unknown_share for loaded in self.models for words in (loaded.source, loaded.target))

    @functools.cached_property
    def _scorer(self) -> PairScorer:
        from nmt_core.inference.scoring.forms import scorer_of_form
        from nmt_core.inference.scoring.pair_scorer import ModelPairScorer

        scorer = ModelPairScorer(self.models, softmax=self._options.softmax)
        return scorer_of_form(self.models, scorer, "surface")

    @property
    def signature(self) -> str:
        """That of its scores."""
        return self._scorer.signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """As a ``PairScorer``."""
        return self._scorer.score(pairs, per_word=per_word, attention=attention)

    @functools.cached_property
    def _unknown(self) -> UnknownShare:
        """The unknown words of what it translates."""
        usual = max(loaded.source.unknown_share for loaded in self.models)
        serve = any(loaded.unknown_words_serve for loaded in self.models)
        return UnknownShare(" + ".join(self._folders), self._warn, hint="", serve=serve, usual=usual)

    @functools.cached_property
    def _words(self) -> SurfaceWords:
        return surface_words(self.models)

    @functools.cached_property
    def _translator(self) -> Any:
        from nmt_core.inference.search.config import DecodingConfig
        from nmt_core.inference.translator import Translator

        config = DecodingConfig.from_mapping(self._search._asdict(), origin="the neural model's search")
        return Translator(self.models, config=config)

    def nbest(self, sentences: Sequence[str], guidance: Sequence[NgramGuidance | None] = ()) -> list[list[NbestEntry]]:
        """The list of every sentence, best first, each with its guidance or none; a blank sentence has no list."""
        from nmt_core.inference.lines import SourceLine

        joined = joins_words(self.models)
        about_words = [one and one._replace(joined=joined) for one in guidance]
        asked = itertools.zip_longest(map(self._words.read, sentences), about_words)
        found = self._translator.translate([SourceLine(text, guidance=one) for text, one in asked])
        words = [word for translations in found if translations for word in translations[0].source_words]
        self._unknown.add(words=len(words), unknown=sum(word not in self._translator.source for word in words))
        return _lists(sentences, found, self._words.write)

    def finish(self) -> None:
        """Say what there is to be said of the words of a text that is not long."""
        self._unknown.finish()


class _Elsewhere:
    """A model that another program runs: it scores and makes lists, and takes no guidance."""

    usual_share = 0.0
    models: Sequence[Any] = ()

    def __init__(self, scorer: PairScorer, search: SearchOptions | None) -> None:
        self._scorer, self._search = scorer, search or SearchOptions()

    @property
    def signature(self) -> str:
        """That of its scores."""
        return self._scorer.signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """As a ``PairScorer``."""
        return self._scorer.score(pairs, per_word=per_word, attention=attention)

    def nbest(self, sentences: Sequence[str], guidance: Sequence[NgramGuidance | None] = ()) -> list[list[NbestEntry]]:
        """As ``Local.nbest``, without guidance."""
        assert not any(guidance)
        return _lists(sentences, self._translate(sentences), str)

    def own_text(self) -> RawText:
        """What makes words of raw text, and back. Raises ConfigError where the model's languages are not known."""
        raise ConfigError("--raw needs --preparation, or a model that is no server's, which has the languages")

    def finish(self) -> None:
        """Nothing is left to be said."""

    def _translate(self, sentences: Sequence[str]) -> Sequence[Iterable[Any]]:
        raise NotImplementedError


class LocalTransformer(_Elsewhere):
    """A Transformer that another library computes (``nmt_core.transformer``)."""

    def __init__(self, spec: str, options: ModelOptions | None = None, search: SearchOptions | None = None) -> None:
        from nmt_core.transformer.model import open_transformer

        options = options or ModelOptions()
        if options.softmax != "full":
            raise ConfigError(f"{spec}: --softmax is for models of nmt-core; leave it out")
        how: dict[str, Any] = {"device": options.device, "dtype": options.dtype, "threads": options.threads}
        self._model = open_transformer(spec, **how)
        super().__init__(self._model, search)

    def own_text(self) -> RawText:
        """The model's own."""
        return self._model.raw_text

    def _translate(self, sentences: Sequence[str]) -> Sequence[Iterable[Any]]:
        return self._model.nbest(sentences, **self._search._asdict())


class Remote(_Elsewhere):
    """A model of a running server, whose log says where it does not know many of the words."""

    def __init__(self, spec: str, search: SearchOptions | None = None) -> None:
        from nmt_core.serving.client.client import NmtClient, RemotePairScorer

        address, model = server_address(spec)
        scorer = RemotePairScorer(address, model=model or None)
        self.client = NmtClient(address, model=scorer.model, one_model=scorer.one_model)
        super().__init__(scorer, search)

    def _translate(self, sentences: Sequence[str]) -> Sequence[Iterable[Any]]:
        return [answer.translations for answer in self.client.translate(sentences, **self._search._asdict())]


def open_model(
    spec: str,
    options: ModelOptions | None = None,
    search: SearchOptions | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Local | LocalTransformer | Remote:
    """The model that ``spec`` names.

    Raises ConfigError for a malformed spec or a folder that is not there, ModelError for a folder
    without a usable model, Unavailable when nobody answers.
    """
    if not spec.startswith((REMOTE, *TRANSFORMERS)):
        return Local(spec, options, search, warn)
    return LocalTransformer(spec, options, search) if spec.startswith(TRANSFORMERS) else Remote(spec, search)


def opened(scorer: str | PairScorer) -> PairScorer:
    """The model that a spec names; any other scorer as it is."""
    return open_model(scorer) if isinstance(scorer, str) else scorer


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for PyTorch meanwhile, as in the workers of the commands: last digits depend on their number."""
    torch = sys.modules.get("torch")  # not loaded for scorers that need none
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def source_factors(scorer: str | PairScorer) -> int:
    """How many factors a scorer, or the model of a spec, reads beside each source word; 0 without such a model."""
    if not isinstance(scorer, str) or scorer.startswith((REMOTE, *TRANSFORMERS)):
        return factors_read(opened(scorer).signature)
    folder = scorer.split(",")[0]
    if not os.path.isdir(folder):
        return 0
    from nmt_core.model_directory.settings import read_settings
    from nmt_core.models.build import source_factors as factors_of

    return factors_of(read_settings(folder).model)


def surface_words(models: Sequence[Any]) -> SurfaceWords:
    """Of loaded models, none with a Transformer. Raises ConfigError where an ensemble was prepared differently."""
    from nmt_core.model_directory.ensembles import shared_preparation
    from nmt_core.text.vocabulary import joint_vocabulary

    if not models:
        return SurfaceWords()
    preparation = shared_preparation(models)
    if preparation is None:
        return SurfaceWords()
    reader = preparation.open_surface("source", joint_vocabulary([model.source for model in models]))
    return SurfaceWords(lambda sentence: reader.read(sentence).text, preparation.open_words("target").undo)


def joins_words(models: Sequence[Any]) -> bool:
    """Whether they mark each part of a word but the last, so that guidance about words is joined."""
    from nmt_core.model_directory.ensembles import shared_preparation

    preparation = shared_preparation(models)
    return preparation is not None and preparation.joins("target")


def check_ours(spec: str) -> None:
    """Raise ConfigError for a model that another program runs: it takes no guidance and does not search in graphs."""
    if spec.startswith((REMOTE, *TRANSFORMERS)):
        raise ConfigError(f"guidance and graphs need a model of nmt-core, not {spec}; give its folder")


def searcher_of(models: Sequence[Any], *, beam: int, nbest: int) -> Any:
    """What searches with models among the strings that guides allow. Raises ConfigError for models that cannot."""
    from nmt_core.inference.guided_search import GuidedTranslator

    return GuidedTranslator(models, beam=beam, nbest=nbest)


def check_takes_guidance(models: Sequence[Any]) -> None:
    """Raise ConfigError for models that write parts of words of which guidance cannot be, or in another order."""
    from nmt_core.inference.lines import check_follows_guidance
    from nmt_core.model_directory.ensembles import shared_preparation

    preparation = shared_preparation(models)
    if preparation is not None and preparation.cuts("target") and not joins_words(models):
        problem = "writes parts of words without a mark behind each but the last, of which guidance can say nothing"
        raise ConfigError(f"{models[0].folder} {problem}; tune, or use another model")
    check_follows_guidance(models[0])


def nbest_entries(number: int, translations: Iterable[Any], write: Callable[[str], str]) -> list[NbestEntry]:
    """The list of the sentence of this number; ``write`` makes words of a text that a model wrote.

    Numbers have six decimals, as ``nmt-core decode --nbest`` writes them.
    """
    entries = []
    for place, one in enumerate(translations, start=1):
        words = write(one.text).replace("|||", "&#124;&#124;&#124;").encode().strip(BLANKS)
        entries.append(NbestEntry(number, words, {FEATURE: (round(one.log_prob, 6),)}, round(one.score, 6), place))
    return entries


def _lists(
    sentences: Sequence[str], found: Sequence[Iterable[Any]], write: Callable[[str], str]
) -> list[list[NbestEntry]]:
    return [
        nbest_entries(number, translations, write) if split_words(sentence) else []
        for number, (sentence, translations) in enumerate(zip(sentences, found, strict=True))
    ]
