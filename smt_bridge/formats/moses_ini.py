"""Editing ``moses.ini``: only what must change does, every other byte stays.

::

    [feature]
    PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0

    [weight]
    TranslationModel0= 0.2 0.2 0.2 0.2

As the decoder reads it: ``#`` begins a comment anywhere, a line beginning with ``[`` begins a section,
a feature without ``name=`` is called by its class and a running number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.files import open_input
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.fields import split_tokens
from smt_bridge.formats.weights import parse_weight_line

_BLANKS = b" \t\r"


class Feature(NamedTuple):
    """One line of the ``[feature]`` section; ``line`` counts from 1."""

    kind: str
    name: str
    options: dict[str, str]
    line: int

    @property
    def num_features(self) -> int:
        """The number of its scores (1 where the line does not say)."""
        return int(self.options.get("num-features", "1"))


@dataclass(frozen=True)
class MosesIni:
    """A configuration as lines without their line feeds; edits make new ones."""

    path: str
    lines: tuple[bytes, ...]

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return b"\n".join(self.lines)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The feature functions, in order. Raises FormatError for a malformed line."""
        unnamed: Counter[str] = Counter()
        found = []
        for number, code in self._section("feature"):
            kind, options = self._parse_feature(number, code)
            name = options.get("name")
            if name is None:
                name = f"{kind}{unnamed[kind]}"
                unnamed[kind] += 1
            found.append(Feature(kind, name, options, number))
        return tuple(found)

    def phrase_table(self, name: str | None = None) -> Feature:
        """The phrase table called ``name``, or the only one; WiringError when that is not clear."""
        tables = [feature for feature in self.features if is_phrase_table(feature)]
        names = ", ".join(table.name for table in tables)
        if not tables:
            raise WiringError(f"{self.path}: has no phrase table in its [feature] section")
        if name is None and len(tables) > 1:
            raise WiringError(f"{self.path}: has several phrase tables ({names}); choose one with --feature NAME")
        for table in tables:
            if name in (None, table.name):
                return table
        raise WiringError(f"{self.path}: has no phrase table called {name}; there is {names}")

    def with_phrase_scores(self, table: Feature, *, path: str, weights: Sequence[float]) -> MosesIni:
        """Point ``table`` at ``path``, with ``len(weights)`` further scores of these start weights.

        Raises WiringError when the present weights do not match ``num-features``, FormatError for a
        malformed weight line.
        """
        if re.search(r"[\s#]", path):
            raise WiringError(f"the path {path!r} has blanks or #, which moses.ini cannot hold; rename the file")
        line = _with_option(self.lines[table.line - 1], "num-features", str(table.num_features + len(weights)))
        line = _with_option(line, "path", path)
        if "tuneable-components" in table.options:
            tuneable = ",".join([table.options["tuneable-components"], *["true"] * len(weights)])
            line = _with_option(line, "tuneable-components", tuneable)
        edited = MosesIni(self.path, (*self.lines[: table.line - 1], line, *self.lines[table.line :]))
        return edited._with_weights(table, weights)

    def has_weights(self, feature: Feature) -> bool:
        """Whether the ``[weight]`` section has a line for ``feature``."""
        return bool(self._weight_lines(feature))

    def _weight_lines(self, feature: Feature) -> list[tuple[int, bytes]]:
        name = re.compile(re.escape(feature.name.encode("utf-8", "surrogateescape")) + rb"[ \t]*=")
        return [(number, code) for number, code in self._section("weight") if name.match(code)]

    def _with_weights(self, table: Feature, added: Sequence[float]) -> MosesIni:
        numbers = " ".join(f"{weight:.9g}" for weight in added)
        for number, code in self._weight_lines(table):
            self._check_weights(number, code, table)
            line = self.lines[number - 1]
            end = line.index(code) + len(code)
            line = line[:end] + b" " + numbers.encode() + line[end:]
            return MosesIni(self.path, (*self.lines[: number - 1], line, *self.lines[number:]))
        ones = "1 " * table.num_features  # what Moses takes where the line is missing
        return self._with_weight_line(f"{table.name}= {ones}{numbers}".encode())

    def _with_weight_line(self, line: bytes) -> MosesIni:
        """Put a line behind the last of the ``[weight]`` section, which is made where there is none."""
        ending = b"\r" if self.lines[0].endswith(b"\r") else b""
        headers = [number for number, raw in enumerate(self.lines, start=1) if _section_name(_code(raw)) == b"weight"]
        place = max([*headers, *(number for number, _ in self._section("weight"))], default=0)
        if place == 0:
            body = list(self.lines) if self.lines[-1] else list(self.lines[:-1])
            return MosesIni(self.path, (*body, ending, b"[weight]" + ending, line + ending, b""))
        return MosesIni(self.path, (*self.lines[:place], line + ending, *self.lines[place:]))

    def _check_weights(self, number: int, code: bytes, table: Feature) -> None:
        try:
            _, weights = parse_weight_line(code.decode("utf-8", "surrogateescape"))
        except ValueError as error:
            raise FormatError(self.path, str(error), line=number) from error
        if len(weights) != table.num_features:
            raise WiringError(
                f"{self.path}:{number}: {table.name} has {len(weights)} weights but num-features={table.num_features}; "
                "was this file edited by hand?"
            )

    def _section(self, name: str) -> list[tuple[int, bytes]]:
        """The lines of all sections ``[name]`` that say something, with their numbers, without comments."""
        current = b""
        found = []
        for number, raw in enumerate(self.lines, start=1):
            code = _code(raw)
            if code.startswith(b"["):
                current = _section_name(code)
            elif code and current == name.encode():
                found.append((number, code))
        return found

    def _parse_feature(self, number: int, code: bytes) -> tuple[str, dict[str, str]]:
        kind, *pairs = [token.decode("utf-8", "surrogateescape") for token in split_tokens(code)]
        options: dict[str, str] = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or key in options:
                problem = "is given twice" if equals else "is not of the form key=value"
                raise FormatError(self.path, f"`{pair}` {problem}; Moses would stop here", line=number)
            options[key] = value
        if not options.get("num-features", "1").isdecimal():
            raise FormatError(self.path, f"num-features={options['num-features']} is not a number", line=number)
        return kind, options


def read_ini(path: str) -> MosesIni:
    """Read a ``moses.ini``; raises InputError when it cannot be read."""
    with open_input(path) as stream:
        return MosesIni(path, tuple(stream.read().split(b"\n")))


def is_phrase_table(feature: Feature) -> bool:
    """Whether a feature is a phrase table with a file of its own."""
    return (feature.kind.startswith("PhraseDictionary") or feature.kind == "ProbingPT") and "path" in feature.options


def _code(line: bytes) -> bytes:
    return line.partition(b"#")[0].strip(_BLANKS)


def _section_name(code: bytes) -> bytes:
    return code[1:].partition(b"]")[0] if code.startswith(b"[") else b""


def _with_option(line: bytes, key: str, value: str) -> bytes:
    """Set ``key=value`` in a feature line: in its place where it is, else behind the last option."""
    code, hash_sign, comment = line.partition(b"#")
    written = f"{key}={value}".encode("utf-8", "surrogateescape")
    edited, times = re.subn(rb"(?<=[ \t])" + re.escape(key.encode()) + rb"=[^ \t\r]*", lambda _: written, code, count=1)
    if not times:
        body = code.rstrip(_BLANKS)
        edited = body + b" " + written + code[len(body) :]
    return edited + hash_sign + comment
