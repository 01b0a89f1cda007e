"""All settings of a preparation, one group a step, and the steps made from them and from what was learned.

The order of the fields is that of the steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.config import Config
from nmt_core.preparation.filters import FiltersConfig
from nmt_core.preparation.steps import (
    Cleanup,
    CleanupConfig,
    LineStep,
    ModelFile,
    OpenModel,
    Punctuation,
    PunctuationConfig,
    Side,
    Tokenization,
    TokenizationConfig,
)
from nmt_core.preparation.subwords import SubwordsConfig, learn_subwords, open_subwords
from nmt_core.preparation.truecasing import TruecasingConfig, learn_truecasing, open_truecasing
from nmt_core.preparation.words import Compounds, CompoundsConfig, learn_compounds

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


def model_name(config: PreparationConfig, step: Learned, side: Side) -> str:
    """The file of a step's model: ``truecasing.de``, or ``subwords`` where the sides share one."""
    shared = step == "subwords" and config.subwords is not None and config.subwords.joint
    return step if shared and len(config.sides_of(step)) > 1 else f"{step}.{config.languages[side]}"


def model_names(config: PreparationConfig, steps: Iterable[Learned]) -> list[str]:
    """The files of the models of these steps."""
    return list(dict.fromkeys(model_name(config, step, side) for step in steps for side in config.sides_of(step)))


def learn(config: PreparationConfig, step: Learned, corpus: dict[Side, str], folder: str) -> None:
    """Learn a step from the corpus as it is before the step; models go into ``folder``."""
    files: dict[str, list[str]] = {}
    for side in config.sides_of(step):
        files.setdefault(os.path.join(folder, model_name(config, step, side)), []).append(corpus[side])
    for output, paths in files.items():
        _learn_file(config, step, paths, output)


def _learn_file(config: PreparationConfig, step: Learned, paths: Sequence[str], output: str) -> None:
    if step == "truecasing":
        learn_truecasing(paths[0], output)
    elif step == "compounds":
        learn_compounds(paths[0], output)
    else:
        assert config.subwords is not None
        learn_subwords(config.subwords, paths, output)


def models_in(folder: str) -> OpenModel:
    """The models of a directory."""
    return lambda name: ModelFile.read(os.path.join(folder, name))


def open_steps(config: PreparationConfig, side: Side, names: Iterable[str], models: OpenModel) -> list[LineStep]:
    """The steps among ``names`` that are on for a side. Raises InputError for a model that is none."""
    if side not in config.languages:
        raise ConfigError(f"the preparation has no {side} side")
    steps = (_open_step(config, side, name, models) for name in names)
    return [step for step in steps if step is not None]


def _open_step(config: PreparationConfig, side: Side, name: str, models: OpenModel) -> LineStep | None:
    language = config.languages[side]
    if name == "cleanup":
        return None if config.cleanup is None else Cleanup()
    if name == "punctuation":
        return None if config.punctuation is None else Punctuation(config.punctuation, language)
    if name == "tokenization":
        return None if config.tokenization is None else Tokenization(config.tokenization, language)
    return _open_learned(config, side, name, models)


def _open_learned(config: PreparationConfig, side: Side, name: str, models: OpenModel) -> LineStep | None:
    if name == "truecasing" and side in config.sides_of("truecasing"):
        return open_truecasing(models(model_name(config, "truecasing", side)))
    if name == "compounds" and config.compounds is not None and side in config.sides_of("compounds"):
        return Compounds.open(models(model_name(config, "compounds", side)), config.compounds)
    if name == "subwords" and config.subwords is not None and side in config.sides_of("subwords"):
        return open_subwords(config.subwords, models(model_name(config, "subwords", side)))
    return None
