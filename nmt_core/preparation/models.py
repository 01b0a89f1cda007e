"""Where what was learned lies, and the steps made from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from nmt_core.errors import ConfigError
from nmt_core.preparation.characters import Cleanup
from nmt_core.preparation.compounds import Compounds, learn_compounds
from nmt_core.preparation.punctuation import Punctuation
from nmt_core.preparation.settings import Learned, PreparationConfig
from nmt_core.preparation.steps import LineStep, Side
from nmt_core.preparation.subwords import learn_subwords, open_subwords
from nmt_core.preparation.tokenization import Tokenization
from nmt_core.preparation.truecasing import Truecasing, learn_truecasing


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


def open_steps(config: PreparationConfig, side: Side, names: Iterable[str], folder: str) -> list[LineStep]:
    """The steps among ``names`` that are on for a side, their models in ``folder``."""
    if side not in config.languages:
        raise ConfigError(f"the preparation has no {side} side")
    steps = (_open_step(config, side, name, folder) for name in names)
    return [step for step in steps if step is not None]


def _open_step(config: PreparationConfig, side: Side, name: str, folder: str) -> LineStep | None:
    language = config.languages[side]
    if name == "cleanup":
        return None if config.cleanup is None else Cleanup()
    if name == "punctuation":
        return None if config.punctuation is None else Punctuation(config.punctuation, language)
    if name == "tokenization":
        return None if config.tokenization is None else Tokenization(config.tokenization, language)
    return _open_learned(config, side, name, folder)


def _open_learned(config: PreparationConfig, side: Side, name: str, folder: str) -> LineStep | None:
    if name == "truecasing" and side in config.sides_of("truecasing"):
        return Truecasing.open(os.path.join(folder, model_name(config, "truecasing", side)))
    if name == "compounds" and config.compounds is not None and side in config.sides_of("compounds"):
        return Compounds.open(os.path.join(folder, model_name(config, "compounds", side)), config.compounds)
    if name == "subwords" and config.subwords is not None and side in config.sides_of("subwords"):
        return open_subwords(config.subwords, os.path.join(folder, model_name(config, "subwords", side)))
    return None
