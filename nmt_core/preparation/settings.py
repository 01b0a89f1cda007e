"""All settings of a preparation, one group a step; the order of the fields is that of the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from nmt_core.config import Config
from nmt_core.errors import ConfigError
from nmt_core.preparation.characters import CleanupConfig
from nmt_core.preparation.compounds import CompoundsConfig
from nmt_core.preparation.filters import FiltersConfig
from nmt_core.preparation.punctuation import PunctuationConfig
from nmt_core.preparation.steps import Side
from nmt_core.preparation.subwords import SubwordsConfig
from nmt_core.preparation.tokenization import TokenizationConfig
from nmt_core.preparation.truecasing import TruecasingConfig

Learned = Literal["truecasing", "compounds", "subwords"]
PLAIN = ("cleanup", "punctuation", "tokenization")
LEARNED: tuple[Learned, ...] = ("truecasing", "compounds", "subwords")
_GERMAN = "de"


class PreparationConfig(Config):
    """``null`` turns a step off, ``{}`` turns one on with its defaults.

    Without ``source_language`` the corpus is monolingual.
    """

    source_language: str | None = Field(default=None, pattern="^[a-z]{2,3}$")
    target_language: str = Field(pattern="^[a-z]{2,3}$")
    cleanup: CleanupConfig | None = CleanupConfig()
    punctuation: PunctuationConfig | None = PunctuationConfig()
    tokenization: TokenizationConfig | None = TokenizationConfig()
    filters: FiltersConfig = FiltersConfig()
    truecasing: TruecasingConfig | None = None
    compounds: CompoundsConfig | None = None
    subwords: SubwordsConfig | None = Field(default=None, discriminator="type")
    shuffle: int | None = Field(default=None, ge=0)

    @property
    def languages(self) -> dict[Side, str]:
        """The language of each side."""
        target: dict[Side, str] = {"target": self.target_language}
        return target if self.source_language is None else {"source": self.source_language, **target}

    def sides_of(self, step: Learned) -> list[Side]:
        """The sides on which a step that learns is on."""
        group = getattr(self, step)
        if group is None:
            return []
        if group.sides is not None:
            return [side for side in self.languages if side in group.sides]
        if step == "compounds":
            return [side for side, language in self.languages.items() if language == _GERMAN]
        return list(self.languages)

    def check(self) -> None:
        """Raise ConfigError for settings that cannot work together."""
        if self.source_language == self.target_language:
            raise ConfigError(f"both sides are in '{self.target_language}'; the outputs could not be told apart")
        if self.compounds is not None and not self.sides_of("compounds"):
            raise ConfigError("compounds: no side is German; name the sides to split in compounds.sides")


def settings_for(earlier: PreparationConfig, languages: Mapping[Side, str | None]) -> PreparationConfig:
    """The settings for a corpus in some of the languages of ``earlier``, on either side."""
    groups: dict[str, Any] = {step: getattr(earlier, step) for step in LEARNED}
    for step in LEARNED:
        on = [earlier.languages[side] for side in earlier.sides_of(step)]
        sides = tuple(side for side, language in languages.items() if language in on)
        groups[step] = groups[step].model_copy(update={"sides": sides}) if groups[step] is not None and sides else None
    return earlier.model_copy(
        update={**{f"{side}_language": language for side, language in languages.items()}, **groups}
    )
