"""A model is a directory.

    config.yaml          format version, architecture, text processing, how it was trained, and names of files
    model.safetensors    parameters, float32; matrices of many zeros as ``nmt_core.model_directory.tensors`` says
    source.vocab         one word a line, special words first, counts behind a tab
    target.vocab
    source.factor1.vocab source.factor2.vocab and so on: factors beside the source words, for models that read them
    preparation/         how raw text becomes what the model reads, for models trained on text of ``nmt-core prepare``
    lexicon.gz           for models trained on text of ``nmt-core annotate``, where one was given

After it was replaced, ``config.yaml`` has other names for files (``nmt_core.model_directory.directory``).
Nothing in it is executable and nothing is pickled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
import yaml
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError, InputError, ModelError
from nmt_core.base.words import split_factors, split_words
from nmt_core.device import choose_device, choose_dtype
from nmt_core.files.reading import check_regular, reason
from nmt_core.layers.products import freeze
from nmt_core.model_directory.directory import (
    LEXICON,
    PARAMETERS,
    PREPARATION,
    VOCABULARIES,
    replace_model,
)
from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.settings import FORMAT_VERSION, FolderConfig, fingerprint_of, read_settings
from nmt_core.model_directory.tensors import (
    parameters_among,
    read_tensors,
    restored_model,
    stored_tensors,
    write_tensors,
)
from nmt_core.models.build import source_factors
from nmt_core.models.interface import TranslationModel
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.text.copying import Copying, no_weight, weight_of
from nmt_core.text.processing import TextConfig
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class LoadedModel:
    """A model ready for use, with its vocabularies and text processing.

    ``fingerprint`` changes with anything in the directory that decides a number (``settings.fingerprint_of``).
    ``factors`` are the vocabularies of the factors that it reads beside each source word, ``lexicon`` is for models of
    annotated text.
    """

    model: TranslationModel
    source: Vocabulary
    target: Vocabulary
    config: FolderConfig
    fingerprint: str
    folder: str
    preparation: BundledPreprocessor | None = None
    factors: tuple[Vocabulary, ...] = ()
    lexicon: CarriedLexicon | None = None

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        """Those of source, target and source factors."""
        return self.source, self.target, *self.factors

    @property
    def text(self) -> TextConfig:
        """How raw text becomes words for this model, where it carries no preparation."""
        return self.config.text

    def encode_text(self, text: str) -> Sentence:
        """Tokenised source text as the model reads it: in training, scoring, search and server.

        Raises ConfigError for words that do not have the factors that the model reads.
        """
        words: Sequence[str] = split_words(text)
        factors: Sequence[Sequence[str]] = ()
        if self.copying is not None:
            words = self.copying.read_source(words)
        if self.factors:
            words, *factors = split_factors(text, len(self.factors))
        ids = [one.encode_words(column) for one, column in zip(self.factors, factors, strict=True)]
        return Sentence(self.source.encode_words(words), text, ids)

    def encode_target(self, text: str) -> Sentence:
        """Tokenised target text as the model reads it, in the order in which it writes."""
        return self.config.target_order.sentence(Sentence(self.target.encode_words(split_words(text)), text))

    @functools.cached_property
    def copying(self) -> Copying | None:
        """How its text is annotated, None where it is not."""
        if self.config.copying is None:
            return None
        weight = no_weight if self.lexicon is None else weight_of(self.lexicon.lexicon)
        return Copying(self.config.copying, self.source, self.target, weight)

    @property
    def unknown_words_serve(self) -> bool:
        """Whether words outside the source vocabulary are read by their characters, or pointed to."""
        return self.model.reads_text or self.copying is not None

    def save(self, folder: str) -> None:
        """Write a model directory; see ``save_model``."""
        save_model(
            folder, self.model, self.source, self.target, self.config, self.preparation, self.factors, self.lexicon
        )

    def prepared_as(self, other: LoadedModel) -> bool:
        """Whether both carry the same preparation, or none: its steps and what these learned are the same."""
        if self.preparation is None or other.preparation is None:
            return self.preparation is other.preparation
        return self.preparation.fingerprint == other.preparation.fingerprint


def save_model(
    folder: str,
    model: TranslationModel,
    source: Vocabulary,
    target: Vocabulary,
    config: FolderConfig,
    preparation: BundledPreprocessor | None = None,
    factors: Sequence[Vocabulary] = (),
    lexicon: CarriedLexicon | None = None,
) -> None:
    """Write a model directory, atomic: whatever happens meanwhile, it holds the model before or this one."""
    tensors = stored_tensors(model)
    carried = {} if preparation is None else {f"{PREPARATION}/{name}": one for name, one in preparation.files.items()}
    if lexicon is not None:
        carried[LEXICON] = lexicon.content
    vocabularies = dict(zip(VOCABULARIES, (source, target, *factors), strict=False))
    hashes = {
        "format_version": FORMAT_VERSION,
        "preparation": None if preparation is None else preparation.hashes,
        "lexicon": None if lexicon is None else lexicon.fingerprint,
    }

    def settings(files: Mapping[str, str]) -> bytes:
        content = config.model_copy(update={**hashes, "files": dict(files)}).to_mapping()
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()

    writers: dict[str, Callable[[str], None]] = {
        PARAMETERS: lambda path: write_tensors(path, tensors),
        **{name: vocabulary.save for name, vocabulary in vocabularies.items()},
        **{name: functools.partial(_write, content) for name, content in carried.items()},
    }
    replace_model(folder, writers, settings)


def _write(content: bytes, path: str) -> None:
    with open(path, "wb") as stream:
        stream.write(content)


def load_model(folder: str, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Read a model directory for inference: the model is frozen. Raises ModelError when it cannot be used."""
    loaded = read_model(folder, dtype=dtype)
    freeze(loaded.model.to(device))
    return loaded


def read_model(folder: str, *, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Read a model directory to change the model or to train it; as for ``load_model``, which raises the same.

    Shapes and types of the file are compared with what the settings describe before anything is allocated.
    """
    while True:
        config = read_settings(folder)
        try:
            return _load(folder, config, dtype)
        except ModelError:
            if read_settings(folder).files == config.files:  # else another model has replaced this one meanwhile
                raise


def load_parameters(folder: str, model: nn.Module) -> dict[str, Tensor]:
    """The parameters that a model directory has for ``model``. Raises ModelError where it is of another model."""
    path = read_settings(folder).path(folder, PARAMETERS)
    return parameters_among(path, read_tensors(path)[0], dict(model.named_parameters()))


def load_models(folders: Iterable[str], *, device: str, dtype: str) -> list[LoadedModel]:
    """Read model directories for inference with the device and the precision that a user named (``nmt_core.device``).

    Raises ConfigError before anything is read, or ModelError.
    """
    chosen = choose_device(device)
    precision = choose_dtype(dtype, chosen)
    return [load_model(folder, device=chosen, dtype=precision) for folder in folders]


def _load(folder: str, config: FolderConfig, dtype: torch.dtype) -> LoadedModel:
    preparation = lexicon = None
    parameters = config.path(folder, PARAMETERS)
    stored, _ = read_tensors(parameters)
    # a mask has a bit for each number of a matrix
    rows = max((len(one) * (8 if one.dtype is torch.uint8 else 1) for one in stored.values() if one.dim()), default=0)
    try:
        if config.preparation is not None:
            place = functools.partial(config.path, folder)
            preparation = BundledPreprocessor.load(lambda name: place(f"{PREPARATION}/{name}"), config.preparation)
        if config.lexicon is not None:
            lexicon = CarriedLexicon.load(config.path(folder, LEXICON), config.lexicon)
        vocabularies = []
        for name in VOCABULARIES[: 2 + source_factors(config.model)]:
            path = config.path(folder, name)
            check_regular(path)
            vocabularies.append(Vocabulary.load(path, most=rows))  # one of more words is not read to its end
        model = restored_model(parameters, stored, config.model, list(map(len, vocabularies)), dtype)
        fingerprint = fingerprint_of(parameters, vocabularies, config, preparation)
        source, target, *factors = vocabularies
        loaded = LoadedModel(model, source, target, config, fingerprint, folder, preparation, tuple(factors), lexicon)
        if loaded.copying is not None:
            loaded.copying.check()
    except InputError as error:
        raise ModelError(f"{error}; copy the model directory again, the whole of it") from error
    except ConfigError as error:
        raise ModelError(f"{folder}: {error}") from error
    except OSError as error:  # a file that another saving has removed meanwhile
        raise ModelError(f"{folder}: cannot be read ({reason(error)})") from error
    return loaded
