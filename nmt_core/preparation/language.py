"""Lines in another language, and sides that are swapped, by py3langid (one small model for some 140 languages)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from nmt_core.config import Config
from nmt_core.errors import ConfigError
from nmt_core.preparation.steps import Side, import_optional

_SAMPLE = 200  # lines that are looked at for swapped sides,
_LETTERS = 20  # of at least so many characters,
_FEWEST = 10  # and so many of them,
_MOST = 0.8  # of which such a share has to be in the other language


class LanguageConfig(Config):
    """A line is dropped when another language is at least ``certainty`` probable.

    Lines of fewer than ``minimum_letters`` characters stay, for they say too little. ``candidates`` are
    languages to tell apart (two-letter codes, those of the corpus added); all known ones by default.
    """

    certainty: float = Field(default=0.9, ge=0, le=1)
    minimum_letters: int = Field(default=20, ge=0)
    candidates: tuple[str, ...] | None = None


class LanguageFilter:
    """Looks at each side of a pair."""

    def __init__(self, config: LanguageConfig, languages: Mapping[Side, str]) -> None:
        self._config = config
        self._languages = languages
        self._identifier = _open_identifier()
        wanted = {*languages.values(), *(config.candidates or ())}
        unknown = sorted(wanted - set(self._identifier.labels))
        if unknown:
            raise ConfigError(f"language identification does not know '{unknown[0]}'; leave filters.language out")
        if config.candidates is not None:
            self._identifier.set_languages(sorted(wanted))

    def wrong_side(self, lines: Sequence[str]) -> Side | None:
        """The first side in another language than its own."""
        for (side, language), line in zip(self._languages.items(), lines, strict=True):
            if len(line) >= self._config.minimum_letters:
                found, certainty = self._identifier.classify(line)
                if found != language and certainty >= self._config.certainty:
                    return side
        return None


def are_swapped(lines: Mapping[Side, Sequence[str]], languages: Mapping[Side, str]) -> bool:
    """Whether most lines of both sides are rather in the other side's language.

    Only the two languages are told apart. False where that cannot be said: py3langid is not installed or does not
    know them, the corpus is monolingual, or the lines are few or short.
    """
    if len(languages) < 2 or importlib.util.find_spec("py3langid") is None:
        return False
    identifier = _open_identifier()
    if not set(languages.values()) <= set(identifier.labels):
        return False
    identifier.set_languages(sorted(languages.values()))
    return all(_is_of_another(identifier, lines[side], language) for side, language in languages.items())


def _is_of_another(identifier: Any, lines: Sequence[str], language: str) -> bool:
    sample = [line for line in lines if len(line) >= _LETTERS][:_SAMPLE]
    others = sum(identifier.classify(line)[0] != language for line in sample)
    return len(sample) >= _FEWEST and others > _MOST * len(sample)


def _open_identifier() -> Any:
    langid = import_optional("py3langid.langid", "py3langid", "language identification")
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
