"""What all configuration classes share; each of them is in the module that it configures.

Files are YAML. Unknown keys are refused and the nearest known key is named; every value can be
overridden by ``key.subkey=value`` from the command line, the value being YAML too. ``no``, ``on``, ``y``,
dates and times are strings, as in YAML 1.2, so that Norwegian is a language: only ``true`` and ``false``
are truth values (a setting that is one still takes ``yes``, ``no``, ``on`` and ``off``).
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Self, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from nmt_core.errors import ConfigError, InputError
from nmt_core.safe_yaml import MOST_BYTES, YamlProblem, parse_yaml
from nmt_core.small_files import read_small

_LONGEST = 400  # of what a library says of a value, which it repeats
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class Config(BaseModel):
    """A frozen bundle of settings that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _truth_values_are_no_numbers(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool) and key in cls.model_fields and _is_number(cls.model_fields[key].annotation):
                raise ValueError(f"{key} is a number, not {str(value).lower()}")
        return values

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], *, origin: str) -> Self:
        """Check ``mapping`` and make the config; ``origin`` (a file, an option) is named in errors."""
        try:
            return cls.model_validate(dict(mapping))
        except ValidationError as error:
            raise ConfigError(f"{origin}: {_explain(cls, error)}") from error

    def to_mapping(self) -> dict[str, Any]:
        """The settings as plain values, ready for YAML."""
        return self.model_dump(mode="json")


def read_yaml(path: str) -> dict[str, Any]:
    """Read a YAML mapping from ``path``. Raises InputError with the line of a mistake."""
    try:
        content = parse_yaml(read_small(path, most=MOST_BYTES))
    except YamlProblem as error:
        raise InputError(path, f"not valid YAML: {error}", line=error.line) from error
    if not isinstance(content, dict):
        raise InputError(path, "expected 'key: value' lines")
    return dict(content)


def with_overrides(mapping: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """A copy of ``mapping`` with each ``key.subkey=value`` of ``assignments`` put in."""
    return with_values(mapping, map(_parse_assignment, assignments))


def with_values(mapping: Mapping[str, Any], values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A copy of ``mapping`` with each value put in at its ``key.subkey``."""
    result: dict[str, Any] = _copy(mapping)
    for key, value in values:
        *folders, last = key.split(".")
        place = result
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--set {key}={value}: '{folder}' is not a group of settings")
        place[last] = value
    return result


def dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by keys such as ``model.hidden``, behind ``prefix``."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= dotted(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _parse_assignment(assignment: str) -> tuple[str, Any]:
    key, equals, text = assignment.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {assignment}: expected KEY=VALUE, such as model.hidden=512")
    try:
        assignment.encode()
        return key.strip(), parse_yaml(text)
    except UnicodeEncodeError as error:
        raise ConfigError(f"--set {assignment}: is not UTF-8, which settings have to be; rename the file") from error
    except YamlProblem as error:
        raise ConfigError(f"--set {assignment}: the value is not valid YAML ({error})") from error


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _explain(cls: type[BaseModel], error: ValidationError) -> str:
    """The first problem of a validation error in one line."""
    first = error.errors()[0]
    path, known = _locate(cls, [str(part) for part in first["loc"]])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path[-1], known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key '{'.'.join(path)}'; {hint}"
    if first["type"] == "missing":
        return f"'{'.'.join(path)}' is missing"
    if first["type"] == "value_error" and isinstance(first["input"], Mapping):
        group = f"'{'.'.join(path)}': " if path else ""  # what does not go together
        return f"{group}{first['msg'].removeprefix('Value error, ')}"
    hint = (
        "; put it in quotes" if first["type"] == "string_type" and not isinstance(first["input"], (dict, list)) else ""
    )
    return f"'{'.'.join(path)}': {first['msg']} (found {first['input']!r}){hint}"


def _locate(cls: type[BaseModel], parts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The keys a user wrote among ``parts``, and the known keys beside the last of them.

    Where a group of settings may be of several kinds, pydantic puts the kind (its ``type``) among the parts.
    """
    path: list[str] = []
    known = list(cls.model_fields)
    kinds: dict[str, type[BaseModel]] = {}
    for part in parts:
        if part in kinds:
            cls = kinds[part]
            known, kinds = list(cls.model_fields), {}
            continue
        path.append(part)
        field = cls.model_fields.get(part)
        if field is None:
            continue
        groups = [kind for kind in (field.annotation, *get_args(field.annotation)) if _is_group(kind)]
        if len(groups) == 1:
            cls = groups[0]
            known = list(cls.model_fields) if part != parts[-1] else known
        kinds = {str(group.model_fields["type"].default): group for group in groups if "type" in group.model_fields}
    return path or list(parts), known


def _is_number(kind: Any) -> bool:
    """Whether a setting is one, or may be."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return bool not in kinds and (int in kinds or float in kinds)


def _is_group(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
