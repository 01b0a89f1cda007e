"""What all configuration classes share; each of them is in the module that it configures.

Files are YAML. Unknown keys are refused and the nearest known key is named; every value can be
overridden by ``key.subkey=value`` from the command line, the value being YAML too. ``no``, ``on``, ``y``,
dates and times are strings, as in YAML 1.2, so that Norwegian is a language: only ``true`` and ``false``
are truth values (a setting that is one still takes ``yes``, ``no``, ``on`` and ``off``).
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Self, TypeGuard, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files.small import read_small

_LONGEST = 400  # of what a library says of a value, which it repeats
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class Config(BaseModel):
    """A frozen bundle of settings that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, dict) else ():
            kinds = set(_kinds(cls.model_fields[key].annotation)) if key in cls.model_fields else set()
            for single in _singles(value) if {int, float} & kinds else ():
                if isinstance(single, bool) and bool not in kinds:
                    raise ValueError(f"{key} is a number, not {str(single).lower()}")
                if isinstance(single, str) and str not in kinds and is_plain_number(single):
                    raise ValueError(f"{key} is a number, not the text '{single}': leave out the quotes")
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


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that a setting may have; of lists and mappings those of their values."""
    arguments = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType, tuple, list):
        for argument in arguments:
            yield from _kinds(argument)
    elif get_origin(annotation) in (dict, Mapping):
        yield from _kinds(arguments[1])
    elif get_origin(annotation) is Annotated:
        yield from _kinds(arguments[0])
    else:
        yield annotation


def _singles(value: Any) -> Iterator[Any]:
    """The values in lists and mappings, however deep."""
    if isinstance(value, (list, tuple, Mapping)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _singles(one)
    else:
        yield value


def _is_group(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


MOST_BYTES = 1 << 18
_DEEPEST = 40
_LARGEST = 1 << 63


class _Loader(yaml.SafeLoader):
    """``yaml.SafeLoader`` without aliases; plain scalars are null, true, false, numbers, and else strings."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # of the library
        if isinstance(event, yaml.AliasEvent):
            raise _mistake(f"the alias *{event.anchor}: write the value out instead", event)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _mistake("nested too deeply", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:  # a date that is none, a number of thousands of digits
            problem = f"not a value ({str(error)[:80]})"
            raise _mistake(problem, node) from error
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise _mistake("a number beyond 64 bits", node)
        return value

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key_node, yaml.ScalarNode):
                if (key_node.tag, key_node.value) in seen:
                    raise _mistake(f"the key '{key_node.value[:80]}' is given twice", key_node)
                seen.add((key_node.tag, key_node.value))
        return dict(super().construct_mapping(node, deep))


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_WHOLE = r"[-+]?(0|[1-9][0-9]*)"
_DECIMAL = r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", _WHOLE, "-+0123456789"),
    ("float", _DECIMAL, "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def _mistake(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def is_plain_number(text: str) -> bool:
    """Whether ``text`` would be a number had it stood without quotes (``1e-4`` would not, and is one for settings)."""
    return re.fullmatch(f"{_WHOLE}|{_DECIMAL}", text) is not None


class YamlProblem(ValueError):
    """What is wrong with a text, and in which of its lines (from 1)."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.line = line


def parse_yaml(content: str | bytes) -> Any:
    """The value that is written in ``content``. Raises YamlProblem."""
    try:
        loader = _Loader(content)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(error.problem or str(error.context), mark.line + 1 if mark else None) from error
    except yaml.reader.ReaderError as error:
        raise YamlProblem(_of_reader(error), _line_of(content, error)) from error
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise YamlProblem(str(error).partition("\n")[0], None) from error


def _of_reader(error: yaml.reader.ReaderError) -> str:
    if error.encoding == "unicode":
        return f"the character U+{error.character:04X} may not stand in it"
    return f"not UTF-8 ({error.reason})"


def _line_of(content: str | bytes, error: yaml.reader.ReaderError) -> int | None:
    if isinstance(content, bytes) and error.encoding == "unicode":
        content = content.decode("utf-8", "replace")
    newline = "\n" if isinstance(content, str) else b"\n"
    return content[: error.position].count(newline) + 1  # type: ignore[arg-type]  # text or bytes, as newline is
