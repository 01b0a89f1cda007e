"""Editing ``moses.ini``: only what must change does, every other byte stays.

::

    [feature]
    PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0

    [weight]
    TranslationModel0= 0.2 0.2 0.2 0.2

As the decoder reads it: ``#`` begins a comment anywhere, a line beginning with ``[`` begins a section,
a feature without ``name=`` is called by its class and a running number, of repeated weights the last counts.
Paths are relative to the folder in which the decoder is started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt_core.base.messages import counted
from nmt_core.files import read_blocks
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.moses.feature_functions import (
    BEFORE_2013,
    BLANKS,
    FeatureFunction,
    code_of,
    find_file,
    is_before_2013,
    is_true,
    parse_features,
    section_lines,
    section_name,
)
from smt_bridge.moses.weights import format_weight_line, parse_weight_line

_OVERRIDES = ("weight-overwrite", "alternate-weight-setting")


class PathOption(NamedTuple):
    """A path that the ini names: ``key`` of the feature ``name`` ("" for ``[weight-file]``), and where the file is.

    ``found`` is the name under which it is found from here, None where it is not; with ``beside`` it is found only
    from the folder of the ini. ``file`` is what is there, with the ending that the decoder adds.
    """

    line: int
    name: str
    key: str
    path: str
    found: str | None
    beside: bool
    file: str | None


class MosesIni(NamedTuple):
    """A configuration as lines without their line feeds; edits make new ones."""

    path: str
    lines: tuple[bytes, ...]

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return b"\n".join(self.lines)

    @property
    def features(self) -> tuple[FeatureFunction, ...]:
        """The feature functions, in order. Raises FormatError for a malformed line."""
        return parse_features(self.lines, path=self.path)

    @property
    def is_before_2013(self) -> bool:
        """Whether tables and weights stand in ``[ttable-file]`` and ``[weight-t]``, not in ``[feature]``."""
        return is_before_2013(self.lines)

    @property
    def paths(self) -> tuple[PathOption, ...]:
        """All files that the ini names."""
        found = [
            self._path_option(feature.line, feature, key, feature.options[key])
            for feature in self.features
            for key in feature.facts.paths
            if feature.options.get(key)
        ]
        for number, code in section_lines(self.lines, "weight-file")[:1]:
            found.append(self._path_option(number, None, "", code.decode("utf-8", "surrogateescape")))
        return tuple(found)

    def _path_option(self, number: int, feature: FeatureFunction | None, key: str, path: str) -> PathOption:
        beside = os.path.join(os.path.dirname(self.path), path)
        name = feature.name if feature else ""
        for place in (path, beside):
            if feature is not None and key in ("path", "base"):
                file = find_file(feature.facts, place, feature.options)
            else:
                file = place if os.path.exists(place) else None
            if file is not None:
                return PathOption(number, name, key, path, place, place != path, file)
        return PathOption(number, name, key, path, None, False, None)

    def phrase_table(self, name: str | None = None) -> FeatureFunction:
        """The phrase table called ``name``, or the only one to which columns can be added; WiringError otherwise."""
        if self.is_before_2013:
            raise WiringError(f"{self.path}: {BEFORE_2013}")
        tables = [feature for feature in self.features if feature.facts.is_table]
        if not tables:
            raise WiringError(f"{self.path}: has no phrase table in its [feature] section")
        names = ", ".join(table.name for table in tables)
        if name is not None:
            wanted = [table for table in tables if table.name == name]
            if not wanted:
                raise WiringError(f"{self.path}: has no phrase table called {name}; there is {names}")
            return self._checked_table(wanted[0])
        grouped = {member for feature in self.features for member in feature.members}  # these cannot grow
        usable = [
            table
            for table in tables
            if table.facts.takes_columns and not table.is_glue_grammar and table.name not in grouped
        ]
        if len(usable) > 1:
            names = ", ".join(table.name for table in usable)
            raise WiringError(f"{self.path}: has several phrase tables ({names}); choose one by `wire --feature NAME`")
        return self._checked_table((usable or tables)[0])

    def _checked_table(self, table: FeatureFunction) -> FeatureFunction:
        """The table, if columns can be added to it."""
        if table.facts.role == "combination":
            members = ", ".join(table.members) or "no table"
            raise WiringError(
                f"{self.path}:{table.line}: {table.name} ({table.kind}) combines {members} and has no file of its own;"
                " edit the ini by hand"
            )
        if not table.facts.takes_columns or "path" not in table.options:
            problem = "has no file of scores: no column can be added"
            raise WiringError(f"{self.path}:{table.line}: {table.name} ({table.kind}) {problem}")
        for group in self.features:
            if table.name in group.members:
                problem = f"combines {table.name} with other tables, whose scores and weights it has too"
                raise WiringError(
                    f"{self.path}:{group.line}: {group.name} ({group.kind}) {problem}; edit the ini by hand, and let"
                    " `smt-bridge doctor` check the numbers"
                )
        for section in _OVERRIDES:
            label = table.name.encode("utf-8", "surrogateescape") + b"="
            for number, code in section_lines(self.lines, section):
                if label in code.split():
                    raise WiringError(
                        f"{self.path}:{number}: [{section}] has weights of {table.name} for the columns it has now;"
                        " put them into [weight] first"
                    )
        return table

    def with_phrase_scores(self, table: FeatureFunction, *, path: str, weights: Sequence[float]) -> MosesIni:
        """Point ``table`` at ``path``, with ``len(weights)`` further scores of these start weights behind its own.

        Raises WiringError when the present weights do not match ``num-features``, FormatError for a malformed weight
        line.
        """
        line = _with_option(self.lines[table.line - 1], "num-features", str(table.num_features + len(weights)))
        if "tuneable-components" in table.options:
            flags = table.options["tuneable-components"] + ",true" * len(weights)
            line = _with_option(line, "tuneable-components", flags)
        edited = self._with_line(table.line, line)._with_weights(table, weights)
        return edited.with_path(table.line, "path", path)

    def with_path(self, number: int, key: str, path: str) -> MosesIni:
        """Set a path of the feature in a line; without a key the line is nothing but the path."""
        if re.search(r"[\s#]", path):
            raise WiringError(f"the path {path!r} has blanks or #, which moses.ini cannot hold; rename the file")
        line = self.lines[number - 1]
        if key:
            return self._with_line(number, _with_option(line, key, path))
        return self._with_line(number, line.replace(code_of(line), path.encode("utf-8", "surrogateescape"), 1))

    def with_absolute_paths(self) -> MosesIni:
        """The same for a Moses that starts in any folder; paths whose files are not found from here stay."""
        edited = self
        for option in self.paths:
            if option.found is not None and not os.path.isabs(option.path):
                edited = edited.with_path(option.line, option.key, os.path.abspath(option.found))
        return edited

    def _with_line(self, number: int, line: bytes) -> MosesIni:
        return MosesIni(self.path, (*self.lines[: number - 1], line, *self.lines[number:]))

    def weight_lines(self, feature: FeatureFunction) -> list[tuple[int, bytes]]:
        """The lines of the ``[weight]`` section for ``feature``, of which Moses takes the last, and their numbers."""
        name = re.compile(re.escape(feature.name.encode("utf-8", "surrogateescape")) + rb"[ \t]*=")
        return [(number, code) for number, code in section_lines(self.lines, "weight") if name.match(code)]

    def _with_weights(self, table: FeatureFunction, added: Sequence[float]) -> MosesIni:
        numbers = " ".join(f"{weight:.9g}" for weight in added).encode()
        for number, code in self.weight_lines(table)[-1:]:  # Moses takes the last
            self._check_weights(number, code, table)
            return self._with_line(number, self.lines[number - 1].replace(code, code + b" " + numbers, 1))
        ones = b"1 " * table.num_features  # what Moses takes where the line is missing
        return self.with_weight_line(table.name.encode("utf-8", "surrogateescape") + b"= " + ones + numbers)

    def with_weight_line(self, line: bytes) -> MosesIni:
        """Put a line behind the last of the ``[weight]`` section, which is made where there is none."""
        ending = b"\r" if self.lines[0].endswith(b"\r") else b""
        headers = [number for number, raw in enumerate(self.lines, start=1) if section_name(code_of(raw)) == "weight"]
        place = max([*headers, *(number for number, _ in section_lines(self.lines, "weight"))], default=0)
        if place == 0 or place < max(feature.line for feature in self.features):
            # behind everything, so that the lines of features keep their numbers
            body = list(self.lines) if self.lines[-1] else list(self.lines[:-1])
            return MosesIni(self.path, (*body, ending, b"[weight]" + ending, line + ending, b""))
        return MosesIni(self.path, (*self.lines[:place], line + ending, *self.lines[place:]))

    def _check_weights(self, number: int, code: bytes, table: FeatureFunction) -> None:
        try:
            weights = parse_weight_line(code.decode("utf-8", "surrogateescape"))[1]
        except ValueError as error:
            raise FormatError(self.path, str(error), line=number) from error
        if len(weights) != table.num_features:
            raise WiringError(
                f"{self.path}:{number}: {table.name} has {counted(len(weights), 'weight')} but"
                f" num-features={table.num_features}; was this file edited by hand?"
            )


def read_ini(path: str) -> MosesIni:
    """Read a ``moses.ini``; raises InputError when it cannot be read."""
    return MosesIni(path, tuple(b"".join(read_blocks(path)).split(b"\n")))


def _with_option(line: bytes, key: str, value: str) -> bytes:
    """Set ``key=value`` in a feature line: in its place where it is, else behind the last option."""
    code, hash_sign, comment = line.partition(b"#")
    written = f"{key}={value}".encode("utf-8", "surrogateescape")
    edited, times = re.subn(rb"(?<=[ \t])" + re.escape(key.encode()) + rb"=[^ \t\r]*", lambda _: written, code, count=1)
    if not times:
        body = code.rstrip(BLANKS)
        edited = body + b" " + written + code[len(body) :]
    return edited + hash_sign + comment


def with_weights(ini: MosesIni, weights: Mapping[str, Sequence[float]]) -> MosesIni:
    """The ini with these weights; components that lists do not show (``tuneable-components``) keep theirs.

    Raises WiringError for a name that the ini does not have, for another number of weights than its feature shows, and
    where weights stand outside of ``[weight]`` too.
    """
    for section in (*_OVERRIDES, "weight-add"):
        if section_lines(ini.lines, section):
            raise WiringError(f"{ini.path}: has weights in [{section}] too; put them into [weight] first")
    features = {feature.name: feature for feature in ini.features}
    for name, values in weights.items():
        if name not in features:
            known = ", ".join(features) or "none"
            raise WiringError(f"{ini.path}: has no feature {name}, which the n-best lists show; it has {known}")
        ini = _with_weight(ini, features[name], values)
    return ini


def _with_weight(ini: MosesIni, feature: FeatureFunction, values: Sequence[float]) -> MosesIni:
    lines = ini.weight_lines(feature)
    number, code = lines[-1] if lines else (0, b"")
    present = parse_weight_line(code.decode("utf-8", "surrogateescape"))[1] if lines else (1.0,) * feature.num_features
    shown = feature.listed(present)
    if len(shown) != len(values):
        raise WiringError(
            f"{ini.path}: {feature.name} shows {counted(len(shown), 'weight')}, but the n-best lists have {len(values)}"
        )
    line = format_weight_line(feature.name, list(_merged(feature, present, values)))
    written = line.encode("utf-8", "surrogateescape")
    if not lines:
        return ini.with_weight_line(written)
    return ini._with_line(number, ini.lines[number - 1].replace(code, written, 1))


def _merged(feature: FeatureFunction, present: Sequence[float], values: Sequence[float]) -> Iterator[float]:
    """The values in the places of the components that lists show, the present weights in the others."""
    flags = feature.options.get("tuneable-components", "").split(",")
    new = iter(values)
    for place, weight in enumerate(present):
        yield next(new) if len(flags) != len(present) or is_true(flags[place]) else weight
