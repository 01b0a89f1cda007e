"""YAML as settings are written in: no file of a few kilobytes becomes gigabytes, or hours, when it is read.

Plain values, lists and mappings, typed as in YAML 1.2 (``no`` and dates are strings); anchors and aliases
within bounds. Keys that are given twice, numbers beyond 64 bits and nesting deeper than any settings have
are mistakes with their line.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MOST_BYTES = 1 << 18
_MOST_VALUES = 100_000  # with every alias written out
_DEEPEST = 40
_LARGEST = 1 << 63


class _Loader(yaml.SafeLoader):
    """``yaml.SafeLoader`` with bounds; plain scalars are null, true, false, numbers, and else strings."""

    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._depth = self._values = 0
        self._sizes: dict[str, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # of the library
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self._sizes:
                raise _mistake("a value that holds itself", event)
            self._values += self._sizes.get(str(event.anchor), 0)
        before, anchor = self._values, getattr(event, "anchor", None)
        self._values += 1
        self._depth += 1
        if self._depth > _DEEPEST or self._values > _MOST_VALUES:
            problem = "nested too deeply" if self._depth > _DEEPEST else f"more than {_MOST_VALUES:,} values"
            raise _mistake(problem, event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if anchor is not None and not isinstance(event, yaml.AliasEvent):
            self._sizes[anchor] = self._values - before
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
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if (key_node.tag, key_node.value) in seen:
                    raise _mistake(f"the key '{key_node.value[:80]}' is given twice", key_node)
                seen.add((key_node.tag, key_node.value))
        return dict(super().construct_mapping(node, deep))


_KEPT_TAGS = ("null", "merge")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _KEPT_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
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
