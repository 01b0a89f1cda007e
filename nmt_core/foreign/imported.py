"""What is read of a foreign checkpoint: a configuration of ours, vocabularies, and the tensors of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from nmt_core.base.errors import InputError
from nmt_core.config import read_yaml
from nmt_core.files.reading import read_json
from nmt_core.foreign.arrays import Array
from nmt_core.models.nematus import Nematus, NematusConfig
from nmt_core.text.vocabulary import Vocabulary


class Files(NamedTuple):
    """The files of a foreign model: its archive, what it was made with, and its vocabularies."""

    model: str
    settings: str | None
    source: str
    target: str


class Imported(NamedTuple):
    """``tensors`` are all parameters of the model of ``config``, by our names and in our shapes."""

    config: NematusConfig
    source: Vocabulary
    target: Vocabulary
    tensors: Mapping[str, Array]

    def model(self) -> Nematus:
        """The model with these parameters."""
        model = Nematus(self.config, len(self.source), len(self.target))
        parameters = dict(model.named_parameters())
        assert parameters.keys() == self.tensors.keys(), "every parameter is read"
        with torch.no_grad():
            for name, parameter in parameters.items():
                assert parameter.shape == self.tensors[name].shape, name
                parameter.copy_(torch.from_numpy(self.tensors[name]))
        return model


def read_settings(path: str) -> dict[str, Any]:
    """Settings in YAML (.yml, .yaml), else in JSON. Raises InputError."""
    if path.lower().endswith((".yml", ".yaml")):
        found: object = read_yaml(path)
    else:
        found = read_json(path, remedy="expected settings: JSON, or YAML under a name in .yml")
    if not isinstance(found, dict):
        raise InputError(path, "expected settings: names with values")
    return {str(name): value for name, value in found.items()}


def check_setting(settings: Mapping[str, Any], path: str, name: str, *expected: object) -> None:
    """Raise InputError where a setting is there and is none of those of the models that are read."""
    found = settings.get(name, expected[0])
    if not any(found == one and isinstance(found, bool) == isinstance(one, bool) for one in expected):
        shown = " or ".join(map(repr, expected))
        raise InputError(path, f"{name} is {_shown(found)}; only models with {shown} can be read")


def size_setting(settings: Mapping[str, Any], path: str, name: str, default: int | None = None) -> int:
    """A whole number of at least 1. Raises InputError for another value."""
    found = settings.get(name, default)
    if type(found) is not int or found < 1:
        raise InputError(path, f"{name} is {_shown(found)}; expected a whole number of at least 1")
    return found


def _shown(value: object) -> str:
    """A value in a message; nested ones, which a small file can make endless, by their kind."""
    return repr(value)[:60] if isinstance(value, (str, int, float)) or value is None else f"a {type(value).__name__}"


def share_setting(settings: Mapping[str, Any], path: str, name: str) -> float:
    """A number from 0 to below 1, 0 where there is none. Raises InputError for another value."""
    found = settings.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < 1:
        raise InputError(path, f"{name} is {_shown(found)}; expected a number from 0 to 1")
    return float(found)
