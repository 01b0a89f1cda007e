"""Words of a Moses pipeline to what a Transformer reads, and what it writes to such words.

Most read running text in SentencePieces, so words are unescaped and detokenised on the way in, and
tokenised and escaped on the way out. A model of ``text: tokenised`` reads words as they stand.
"""

from __future__ import annotations

import os
import re
from typing import Literal

from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_words
from nmt_core.config import Config, read_yaml
from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.subwords import Bpe, SentencePieces
from nmt_core.text.processing import TextConfig, TextProcessor

SETTINGS = "hybridmt.yaml"
_LANGUAGE = "^[a-z]{2,3}$"
_NAMED = re.compile(r"(?:^|[-_.])([a-z]{2,3})-([a-z]{2,3})$")  # opus-mt-en-fr


class TextOfModel(Config):
    """The file ``hybridmt.yaml`` in a model's directory; what is absent follows from the directory.

    ``source_subwords`` and ``target_subwords`` are files there: SentencePiece models (``.spm``, ``.model``), or merge
    operations of subword-nmt. Without them words are not cut. ``source_prefix`` stands before each source: a language
    (``>>fra<<``), a task, or nothing. ``source_end``: whether the source's end is a piece that the caller writes.
    """

    source_language: str | None = Field(default=None, pattern=_LANGUAGE)
    target_language: str | None = Field(default=None, pattern=_LANGUAGE)
    text: Literal["running", "tokenised"] | None = None
    source_subwords: str | None = None
    target_subwords: str | None = None
    source_prefix: str | None = None
    source_end: bool | None = None

    @classmethod
    def read(cls, folder: str) -> TextOfModel:
        """The settings of a directory. Raises ConfigError and InputError."""
        path = os.path.join(folder, SETTINGS)
        given = cls.from_mapping(read_yaml(path), origin=path) if os.path.exists(path) else cls()
        found: dict[str, str] = {}
        for key, name in (("source_subwords", "source.spm"), ("target_subwords", "target.spm")):
            if getattr(given, key) is None and os.path.exists(os.path.join(folder, name)):
                found[key] = name
        if named := _NAMED.search(os.path.basename(os.path.abspath(folder))):
            languages = dict(zip(("source_language", "target_language"), named.groups(), strict=True))
            found |= {key: language for key, language in languages.items() if getattr(given, key) is None}
        return given.model_copy(update=found)

    @property
    def is_running(self) -> bool:
        """Whether the model reads running text: one with SentencePiece does, unless the settings say otherwise."""
        if self.text is not None:
            return self.text == "running"
        return self.source_subwords is not None and _is_sentence_pieces(self.source_subwords)

    def open_raw_text(self, folder: str) -> TextProcessor:
        """Raw text to words, and words to text for people. Raises ConfigError where a language is not known."""
        source, target = self.source_language, self.target_language
        if source is None or target is None:
            raise _unknown_languages(folder, "raw text needs")
        return TextProcessor(TextConfig(source_language=source, target_language=target))


class WordsOfSide:
    """One side's words to what its model reads, and back. Raises ConfigError where running text has no language."""

    def __init__(self, folder: str, language: str | None, *, is_running: bool) -> None:
        if is_running and language is None:
            raise _unknown_languages(folder, "detokenisation needs")
        self._text = TextProcessor(TextConfig(source_language=language, target_language=language)) if language else None
        self._is_running = is_running

    def text_of(self, words: str) -> str:
        """Running text of tokenised words; the words where the model reads these."""
        return self._text.detokenize(words) if self._text is not None and self._is_running else words

    def words_of(self, text: str) -> str:
        """The tokenised words of what the model writes."""
        if self._text is not None and self._is_running:
            return self._text.tokenize(text)
        return " ".join(text.split("\n"))  # which would end a line of an output


class PiecesOfSide(WordsOfSide):
    """The same to pieces and back. Raises InputError, too."""

    def __init__(self, folder: str, subwords: str | None, language: str | None, *, is_running: bool) -> None:
        super().__init__(folder, language, is_running=is_running)
        self._subwords: Bpe | SentencePieces | None = None
        if subwords is not None:
            model = ModelFile.read(os.path.join(folder, subwords))
            self._subwords = SentencePieces(model) if _is_sentence_pieces(subwords) else Bpe(model)

    def cut(self, words: str) -> list[str]:
        """The pieces of a tokenised text."""
        text = self.text_of(words)
        return split_words(self._subwords.apply(text) if self._subwords is not None else text)

    def join(self, pieces: list[str]) -> str:
        """The tokenised text of pieces."""
        text = " ".join(pieces)
        return self.words_of(self._subwords.undo(text) if self._subwords is not None else text)


def _unknown_languages(folder: str, needed: str) -> ConfigError:
    """What is said of a directory that does not name its languages."""
    return ConfigError(
        f"{folder}: its languages are not known, which {needed}; name the directory "
        f"…-en-fr, or write source_language and target_language into {os.path.join(folder, SETTINGS)}"
    )


def _is_sentence_pieces(name: str) -> bool:
    return name.endswith((".spm", ".model"))
