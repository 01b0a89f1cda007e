"""What all configuration classes share; each of them is in the module that it configures.

Files are YAML without aliases and without a key that is given twice. Unknown keys are errors that name the nearest
known key; every value can be overridden by ``key.subkey=value`` from the command line, the value being YAML too. As in
YAML 1.2, ``no``, ``on``, ``y``, dates and times are strings, so that Norwegian is a language: only ``true`` and
``false`` are truth values. A truth value or a text is no number.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeGuard, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files.reading import read_small

MOST_BYTES = 1 << 18
_MOST_SHOWN = 80  # characters of a value
_HINTS = {"string_type": "; put it in quotes", "bool_type": "; write true or false"}


class Config(BaseModel):
    """A frozen bundle of settings that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], *, origin: str) -> Self:
        """Check ``mapping`` and make the config; errors name ``origin`` (a file, an option), and the line of a file."""
        try:  # as JSON, whose strict rules take a text for an enumeration and a whole number for a real one
            return cls.model_validate_json(json.dumps(mapping, default=str), strict=True)
        except ValidationError as error:
            raise ConfigError(_explain(cls, error, origin)) from error

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


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings of several layers, a later one on top of the earlier ones, key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            before = merged.get(key)
            is_group = isinstance(value, Mapping)
            merged[key] = merge(before if isinstance(before, Mapping) else {}, value) if is_group else value
    return merged


def with_overrides(settings: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The settings with each ``key.subkey=value`` of ``assignments`` put in."""
    return with_values(settings, dict(map(_parse_assignment, assignments)))


def with_values(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each value put in at its ``key.subkey``."""
    result = merge(settings)
    for key, value in values.items():
        *groups, last = key.split(".")
        group = result
        for name in groups:
            group = group.setdefault(name, {})
            if not isinstance(group, dict):
                raise ConfigError(f"--set {key}={value}: '{name}' is not a group of settings")
        group[last] = value
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


def _explain(cls: type[BaseModel], error: ValidationError, origin: str) -> str:
    """The first problem of a validation error in one line."""
    first = error.errors()[0]
    keys, known = _locate(cls, [str(part) for part in first["loc"]])
    value, name, problem = first["input"], ".".join(keys), first["msg"].removeprefix("Value error, ")
    line = _line_of(origin, keys, value)
    place = origin if line is None else f"{origin}:{line}"
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(keys[-1], known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
        return f"{place}: unknown key '{name}'; {hint}"
    if first["type"] == "missing":
        return f"{origin}: '{name}' is missing"
    if first["type"] == "value_error" and isinstance(value, Mapping):  # what does not go together
        return f"{place}: '{name}': {problem}" if keys else f"{place}: {problem}"
    hint = "" if isinstance(value, (dict, list)) else _HINTS.get(first["type"], "")
    if isinstance(value, str) and _NUMBER.fullmatch(value) and first["type"] in ("int_type", "float_type"):
        hint = "; leave out the quotes"
    return f"{place}: '{name}': {problem} (found {repr(value)[:_MOST_SHOWN]}){hint}"


def _line_of(path: str, keys: Sequence[str], value: Any) -> int | None:
    """The line of a file in which a key has this value; None where it is from somewhere else."""
    with contextlib.suppress(InputError, yaml.YAMLError, StopIteration, LookupError, ValueError, RecursionError):
        loader = _Loader(read_small(path, most=MOST_BYTES, regular=True))
        node = place = loader.get_single_node()
        for key in keys:
            if isinstance(node, yaml.MappingNode):
                place, node = next((name, found) for name, found in node.value if name.value == key)
            elif isinstance(node, yaml.SequenceNode):
                place = node = node.value[int(key)]
        if keys and repr(loader.construct_document(node)) == repr(value):  # NaN differs from itself
            return int(place.start_mark.line) + 1  # type: ignore[union-attr]  # a value has a place
    return None


def _locate(cls: type[BaseModel], parts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The keys as the file has them, and the known keys next to the last one.

    ``parts`` is pydantic's path: where a group of settings may be of several kinds, it has the kind (``type``) too.
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


def _is_group(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


_NO_TEXT = re.compile("[\x00\ud800-\udfff]")  # which escapes can write, and no file's name or text can have
_WHOLE = r"[-+]?(0|[1-9][0-9]{0,18})"  # what is longer is no number of any setting
_DECIMAL = r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_NUMBER = re.compile(f"{_WHOLE}|{_DECIMAL}")
_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """``yaml.SafeLoader`` without aliases and dates; plain scalars are null, true, false, numbers, and else strings."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # of the library
        if isinstance(event, yaml.AliasEvent):
            raise _mistake(f"the alias *{event.anchor}: write the value out instead", event)
        if isinstance(event, yaml.ScalarEvent) and (wrong := _NO_TEXT.search(event.value)):
            raise _mistake(f"the character U+{ord(wrong[0]):04X} may not stand in it", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(self.construct_object(key_node), (list, dict)):
                raise _mistake("a key that is no single word", key_node)
            key = key_node.value  # as it is written: 1 and '1' are one key
            if key in found:
                raise _mistake(f"the key '{key[:_MOST_SHOWN]}' is given twice", key_node)
            found[key] = self.construct_object(value_node, deep=deep)
        return found


_Loader.yaml_constructors = {
    tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if tag is None or tag.split(":")[-1] in _TAGS
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", _WHOLE, "-+0123456789"),
    ("float", _DECIMAL, "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def _mistake(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class YamlProblem(ValueError):
    """What is wrong with a text, and in which of its lines (from 1)."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.line = line


def parse_yaml(content: str | bytes) -> Any:
    """The value that is written in ``content``. Raises YamlProblem."""
    try:
        text = content if isinstance(content, str) else content.decode()
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(error.problem or str(error.context), mark.line + 1 if mark else None) from error
    except yaml.reader.ReaderError as error:
        problem = f"the character U+{error.character:04X} may not stand in it"
        raise YamlProblem(problem, text[: error.position].count("\n") + 1) from error
    except UnicodeDecodeError as error:
        raise YamlProblem(f"not UTF-8 ({error.reason})", error.object[: error.start].count(b"\n") + 1) from error
    except RecursionError as error:
        raise YamlProblem("nested too deeply", None) from error
    except (ValueError, LookupError) as error:  # a tag, such as !!int, before what is none
        raise YamlProblem(f"not a value ({str(error)[:_MOST_SHOWN]})", None) from error
