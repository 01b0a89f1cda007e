"""The preprocessor bundled with a model, in its directory: raw text becomes what the model was trained on, and back.

It is the ``preparation.json`` of the training text with what was learned beside it, about the languages
of the model: a model of the other direction, or a language model, has the sides it needs. Files are
held in memory (a few megabytes), so that a model can be saved wherever it came from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files import open_output
from nmt_core.files.reading import read_small
from nmt_core.preparation.record import NAME, Record, parse_record, render_record
from nmt_core.preparation.settings import (
    LEARNED,
    PLAIN,
    Learned,
    PreparationConfig,
    model_name,
    model_names,
    open_steps,
    settings_for,
)
from nmt_core.preparation.steps import LineStep, ModelFile, Side, Tokenization, TokenizationConfig
from nmt_core.preparation.surface import SurfaceReader
from nmt_core.text.processing import TextConfig
from nmt_core.text.vocabulary import Vocabulary

MOST_BYTES = 1 << 28  # of a file
_CUTTING: tuple[Learned, ...] = ("compounds", "subwords")


@dataclass(frozen=True)
class BundledPreprocessor:
    """``files`` are a ``preparation.json`` and the models of what was learned, by name; ``record`` is the former.

    Its sides are those of the model.
    """

    record: Record
    files: Mapping[str, bytes]

    @classmethod
    def read(cls, path: str) -> BundledPreprocessor:
        """The one that a ``preparation.json`` speaks of. Raises InputError for files that are not as it says."""
        return cls._read(lambda name: path if name == NAME else os.path.join(os.path.dirname(path), name))

    @classmethod
    def load(cls, path_of: Callable[[str], str], hashes: Mapping[str, str]) -> BundledPreprocessor:
        """The one of a model: ``path_of`` says where its files are, which must have these hashes. Raises InputError."""
        found = cls._read(path_of)
        for name in sorted(found.hashes.keys() | hashes.keys()):
            if found.hashes.get(name) != hashes.get(name):
                raise InputError(path_of(name), "not the file that the model was saved with")
        return found

    @classmethod
    def of_corpus(
        cls, settings: PreparationConfig, models: Mapping[str, bytes], files: Sequence[str]
    ) -> BundledPreprocessor:
        """The one of a corpus that other programs prepared so: its ``files``, and ``models`` by name."""
        sides = dict(zip(settings.languages, files, strict=True))
        hashes = {name: _hash(content) for name, content in models.items()}
        record = Record(settings=settings, models=hashes, inputs=sides, outputs=sides, read=0, kept=0, dropped=[])
        return cls(record, {NAME: render_record(record), **models})

    @classmethod
    def _read(cls, path_of: Callable[[str], str]) -> BundledPreprocessor:
        path = path_of(NAME)
        content = read_bounded(path)
        record = parse_record(content, path)
        if set(record.models) != set(model_names(record.settings, LEARNED)):
            raise InputError(path, "speaks of other files than its steps have; was it edited? Prepare the text again")
        models = {name: read_bounded(path_of(name)) for name in record.models}
        for name, model in models.items():
            if _hash(model) != record.models[name]:
                problem = f"not the model that {NAME} speaks of; copy the whole directory again"
                raise InputError(path_of(name), problem)
        return cls(record, {NAME: content, **models})

    def between(self, source: Side | None, target: Side) -> BundledPreprocessor:
        """The same for a model that reads the ``source`` side and writes the ``target`` side."""
        earlier = self.record.settings
        languages = earlier.languages
        for side in (source, target):
            if side is not None and side not in languages:
                raise ConfigError(
                    f"the preparation is of one language, {earlier.target_language}; give one of both languages"
                )
        new_sides: dict[Side, Side] = {"target": target} if source is None else {"source": source, "target": target}
        settings = settings_for(
            earlier, {"source": None if source is None else languages[source], "target": languages[target]}
        )
        models = {
            model_name(settings, step, side): self.files[model_name(earlier, step, new_sides[side])]
            for step in LEARNED
            for side in settings.sides_of(step)
        }
        record = self.record.model_copy(
            update={
                "settings": settings,
                "models": {name: _hash(content) for name, content in models.items()},
                "inputs": {side: self.record.inputs[old] for side, old in new_sides.items()},
                "outputs": {side: self.record.outputs[old] for side, old in new_sides.items()},
            }
        )
        return BundledPreprocessor(record, {NAME: render_record(record), **models})

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of every file."""
        return {name: _hash(content) for name, content in self.files.items()}

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change when a step or what it learned changes."""
        settings = self.record.settings.to_mapping()
        steps = {name: settings[name] for name in ("source_language", "target_language", *PLAIN, *LEARNED)}
        return _hash(json.dumps([steps, self.record.models], sort_keys=True).encode())[:12]

    @property
    def text(self) -> TextConfig:
        """Languages and tokenisation, for users of these alone."""
        settings = self.record.settings
        languages = {f"{side}_language": language for side, language in settings.languages.items()}
        tokenization = {} if settings.tokenization is None else settings.tokenization.to_mapping()
        punctuation = {"normalize_punctuation": settings.punctuation is not None}
        return TextConfig.from_mapping({**languages, **tokenization, **punctuation}, origin=NAME)

    def write_models(self, folder: str, names: Iterable[str]) -> None:
        """Put these models into ``folder``."""
        for name in names:
            with open_output(os.path.join(folder, name), as_it_is=True) as stream:
                stream.write(self.files[name])

    def side_of(self, language: str, path: str) -> Side:
        """The side in a language. Raises ConfigError, naming ``path``, where there is none."""
        languages = self.record.settings.languages
        for side, known in languages.items():
            if known == language:
                return side
        known = " and ".join(languages.values())
        raise ConfigError(f"{path} is about {known}, not {language}; give its languages, or leave --like out")

    def open_side(self, side: Side) -> Preprocessor:
        """The steps of one side."""
        return Preprocessor(self._open(side, (*PLAIN, *LEARNED)))

    def cuts(self, side: Side) -> bool:
        """Whether it makes several words of one."""
        return any(side in self.record.settings.sides_of(step) for step in _CUTTING)

    def joins(self, side: Side) -> bool:
        """Whether it makes parts of words and nothing else of them, with the joiner behind all but the last."""
        settings = self.record.settings
        parts = settings.subwords is not None and settings.subwords.type != "sentencepiece"
        return parts and [side in settings.sides_of(step) for step in _CUTTING] == [False, True]

    def open_surface_side(self, side: Side) -> Preprocessor:
        """The steps of one side but those that cut words: running text to the words of a Moses system, and back."""
        return Preprocessor(self._open(side, [step for step in (*PLAIN, *LEARNED) if step not in _CUTTING]))

    def open_words(self, side: Side) -> Preprocessor:
        """The steps that cut words, whose ``undo`` makes words again; truecased and tokenised text stays so."""
        return Preprocessor(self._open(side, _CUTTING))

    def open_surface(self, side: Side, known: Vocabulary) -> SurfaceReader:
        """What reads surface words for a model that knows these words; those of a missing side stay as they are."""
        if side not in self.record.settings.languages:
            return SurfaceReader(self.record.settings, (), (), known, str)
        plain = self._open(side, ("cleanup", "punctuation"))
        language = self.record.settings.languages[side]
        tokenization = Tokenization(TokenizationConfig(), language)
        return SurfaceReader(self.record.settings, plain, self._open(side, _CUTTING), known, tokenization.undo)

    def _open(self, side: Side, names: Iterable[str]) -> list[LineStep]:
        return open_steps(self.record.settings, side, names, lambda name: ModelFile(name, self.files[name]))


class PreparedText:
    """Raw text to what a model reads, and back; what a ``TextProcessor`` does for models without one.

    With ``surface`` it is what a Moses system reads: words are not cut.
    """

    def __init__(self, preparation: BundledPreprocessor, *, surface: bool = False) -> None:
        self.preparation = preparation
        languages = preparation.record.settings.languages
        open_side = preparation.open_surface_side if surface else preparation.open_side
        self._source = open_side("source") if "source" in languages else None
        self._target = open_side("target")

    def __repr__(self) -> str:
        return f"PreparedText({self.preparation.fingerprint})"

    def tokenize(self, line: str) -> str:
        """Raw source text as the words that the model reads; those of a language model are none."""
        return "" if self._source is None else self._source.apply(line)

    def tokenize_target(self, line: str) -> str:
        """The same for raw target text."""
        return self._target.apply(line)

    def detokenize(self, text: str) -> str:
        """What the model writes as people write it."""
        return self._target.undo(text)


def read_bounded(path: str) -> bytes:
    """The content of a regular file of bounded size. Raises InputError for anything else."""
    return read_small(path, most=MOST_BYTES, regular=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Preprocessor:
    """Steps of one side, forth and back."""

    def __init__(self, steps: Sequence[LineStep]) -> None:
        self._steps = tuple(steps)

    def apply(self, line: str) -> str:
        """What the line would have been in the corpus, had no filter dropped it."""
        for step in self._steps:
            line = step.apply(line)
        return line

    def undo(self, line: str) -> str:
        """Text for people from a line of such a corpus or a model's output."""
        for step in reversed(self._steps):
            line = step.undo(line)
        return line
