"""Raw text to the words a Moses pipeline sees, and back.

On the way in: ``normalize-punctuation.perl`` and ``tokenizer.perl``, with Moses' escapes
(``&apos;``, ``&#124;`` and so on), so that a model trained on a Moses corpus and the phrase table
made from it speak of the same words. On the way out: ``detokenizer.perl``, escapes undone. The
Python port *sacremoses* does the work (``moses_scripts``); it is imported when a ``TextProcessor`` is made.

>>> processor = TextProcessor(TextConfig(source_language="en", target_language="fr"))
>>> processor.tokenize("It's late (again).")
'It &apos;s late ( again ) .'
>>> processor.detokenize("L&apos; homme dort .")
"L'homme dort."
"""

from __future__ import annotations

import re
from typing import Protocol

from pydantic import Field

from nmt_core.base.languages import say_if_without_rules
from nmt_core.base.words import split_words
from nmt_core.config import Config
from nmt_core.text.moses_scripts import PunctuationNormalizer, import_sacremoses, open_tokenizer

_LANGUAGE = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"  # it becomes part of a file's name in the library
# tokenizer.perl always cuts the full stop off the last word of a line; the port keeps it on abbreviations.
_LAST_STOP = re.compile(r"(?<=[^ .])\.$")


class TextConfig(Config):
    """How the corpus of a model was prepared; stored with the model, the defaults are those of Moses.

    Languages choose abbreviations that keep their full stop and the rules for apostrophes. ``aggressive_hyphens`` is
    ``tokenizer.perl -a`` (``@-@``), ``escape`` is off for corpora made with ``-no-escape``.
    """

    source_language: str = Field(default="en", pattern=_LANGUAGE)
    target_language: str = Field(default="fr", pattern=_LANGUAGE)
    normalize_punctuation: bool = True
    aggressive_hyphens: bool = False
    escape: bool = True


class RawText(Protocol):
    """Raw text to the words that a model reads, and the words that it writes to text for people."""

    def tokenize(self, line: str) -> str:
        """Raw source text as the model reads it, words with single spaces between them."""
        ...

    def tokenize_target(self, line: str) -> str:
        """The same for raw target text, such as a reference."""
        ...

    def detokenize(self, text: str) -> str:
        """What the model writes as people write it."""
        ...


class TextProcessor:
    """Both directions for one model's pair of languages."""

    def __init__(self, config: TextConfig) -> None:
        self.config = config
        languages = (config.source_language, config.target_language)
        for language in languages:
            say_if_without_rules(language)
        self._normalizers = {language: PunctuationNormalizer(language) for language in languages}
        self._tokenizers = {language: open_tokenizer(language) for language in languages}
        self._detokenizer = import_sacremoses().MosesDetokenizer(lang=config.target_language)

    def __repr__(self) -> str:
        return f"TextProcessor({self.config.source_language} -> {self.config.target_language})"

    def tokenize(self, line: str) -> str:
        """Raw source text as words with single spaces between them."""
        return self._tokenize(line, self.config.source_language)

    def tokenize_target(self, line: str) -> str:
        """The same for raw target text, such as a reference."""
        return self._tokenize(line, self.config.target_language)

    def detokenize(self, text: str) -> str:
        """Tokenised target text as people write it."""
        words = split_words(text)
        return str(self._detokenizer.detokenize(words, unescape=self.config.escape)) if words else ""

    def _tokenize(self, line: str, language: str) -> str:
        if self.config.normalize_punctuation:
            # The Perl script sees the line feed, and one of its rules for quotation marks needs it.
            line = self._normalizers[language].normalize(line + "\n")
        text = self._tokenizers[language].tokenize(
            line,
            aggressive_dash_splits=self.config.aggressive_hyphens,
            escape=self.config.escape,
            return_str=True,
        )
        return _LAST_STOP.sub(" .", text)
