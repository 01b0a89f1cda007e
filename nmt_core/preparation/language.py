"""Lines in another language, told by py3langid (fast, one model of a few megabytes for some 140 languages)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from nmt_core.config import Config
from nmt_core.errors import ConfigError
from nmt_core.preparation.steps import Side, import_optional


class LanguageConfig(Config):
    """A line goes when another language is at least ``certainty`` probable.

    Lines of fewer than ``minimum_letters`` characters stay, for they say too little. ``candidates`` are
    languages to tell apart (two-letter codes, those of the corpus added); all known ones by default.
    """

    certainty: float = Field(default=0.9, ge=0, le=1)
    minimum_letters: int = Field(default=20, ge=0)
    candidates: tuple[str, ...] | None = None


class LanguageFilter:
    """Looks at each side of a pair."""

    def __init__(self, config: LanguageConfig, languages: Mapping[Side, str]) -> None:
        langid = import_optional("py3langid.langid", "py3langid", "language identification")
        self._config = config
        self._languages = languages
        self._identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
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
