"""Another corpus prepared with the settings and models of an earlier one, filters included."""

from __future__ import annotations

import os
import shutil
from typing import Any

from nmt_core.errors import ConfigError
from nmt_core.preparation.models import model_name
from nmt_core.preparation.record import read_record
from nmt_core.preparation.settings import LEARNED, Learned, PreparationConfig
from nmt_core.preparation.sides import Side


def settings_like(path: str, *, source_language: str | None, target_language: str | None) -> PreparationConfig:
    """The settings in a ``preparation.json`` for a corpus in some of its languages, on either side."""
    earlier = read_record(path).settings
    if target_language is None:
        source_language, target_language = earlier.source_language, earlier.target_language
    languages: dict[Side, str | None] = {"source": source_language, "target": target_language}
    known = list(earlier.languages.values())
    for language in languages.values():
        if language is not None and language not in known:
            raise ConfigError(f"{path} is about {' and '.join(known)}, not {language}")
    settings = earlier.model_copy(update={f"{side}_language": language for side, language in languages.items()})
    groups: dict[str, Any] = {step: getattr(settings, step) for step in LEARNED}
    for step in LEARNED:
        group = groups[step]
        on = [earlier.languages[side] for side in earlier.sides_of(step)]
        sides = tuple(side for side, language in languages.items() if language in on)
        groups[step] = group.model_copy(update={"sides": sides}) if group is not None and sides else None
    return settings.model_copy(update=groups)


def copy_models(path: str, config: PreparationConfig, step: Learned, folder: str) -> None:
    """Put the models of a step, as ``config`` names them, into ``folder``."""
    earlier = read_record(path).settings
    sides = {language: side for side, language in earlier.languages.items()}
    for side in config.sides_of(step):
        name = model_name(earlier, step, sides[config.languages[side]])
        shutil.copyfile(os.path.join(os.path.dirname(path), name), os.path.join(folder, model_name(config, step, side)))
