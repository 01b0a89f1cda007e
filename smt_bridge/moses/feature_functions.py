"""The lines of the ``[feature]`` section of ``moses.ini``, understood.

::

    PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0

A feature without ``name=`` is called by its class and a running number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from nmt_core.base.numbers import whole_number
from smt_bridge.errors import FormatError
from smt_bridge.moses.feature_kinds import FeatureKind, kind_of
from smt_bridge.moses.ini_lines import section_lines
from smt_bridge.moses_lines import split_tokens

_MOST_SCORES = 10_000  # of one feature
_FALSE = ("0", "false", "no", "n", "f", "off")


class Feature(NamedTuple):
    """One line of the ``[feature]`` section; ``line`` counts from 1."""

    kind: str
    name: str
    options: dict[str, str]
    line: int

    @property
    def facts(self) -> FeatureKind:
        """What is known of its class."""
        return kind_of(self.kind)

    @property
    def scores(self) -> int | None:
        """The number of its scores; None where only the decoder knows it."""
        if self.facts.role == "lm":
            return 1 + self.switch("oov-feature")
        return int(self.options["num-features"]) if "num-features" in self.options else self.facts.scores

    @property
    def num_features(self) -> int:
        """The number of its scores, 1 where only the decoder knows it."""
        return 1 if self.scores is None else self.scores

    @property
    def is_glue_grammar(self) -> bool:
        """Whether it is the glue grammar of a chart decoder, by its name, as filter-model-given-input.pl decides."""
        return "glue-grammar" in self.options.get("path", "")

    @property
    def is_tuneable(self) -> bool:
        """Whether n-best lists show it and tuners find its weights."""
        return is_true(self.options["tuneable"]) if "tuneable" in self.options else self.facts.tuneable

    def switch(self, key: str) -> bool:
        """Whether an option is given and on."""
        return is_true(self.options.get(key, "false"))

    def listed(self, weights: Sequence[float]) -> tuple[float, ...]:
        """Those of its weights whose scores n-best lists show (``tuneable``, ``tuneable-components``)."""
        if not self.is_tuneable:
            return ()
        flags = self.options.get("tuneable-components", "").split(",")
        if len(flags) != len(weights):
            return tuple(weights)
        return tuple(weight for weight, flag in zip(weights, flags, strict=True) if is_true(flag))

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the tables that it combines."""
        named = self.options.get(self.facts.members, "") if self.facts.members else ""
        return tuple(named.split(",")) if named else ()


def is_true(text: str) -> bool:
    """A switch as the decoder reads it."""
    return text.lower() not in _FALSE


def parse_features(lines: Sequence[bytes], *, path: str) -> tuple[Feature, ...]:
    """The feature functions, in order; raises FormatError, naming the line of ``path``, for a malformed one."""
    unnamed: Counter[str] = Counter()
    found = []
    for number, code in section_lines(lines, "feature"):
        kind, options = _parse_feature(path, number, code)
        name = options.get("name")
        if name is None:
            name = f"{kind}{unnamed[kind]}"
            unnamed[kind] += 1
        found.append(Feature(kind, name, options, number))
    return tuple(found)


def _parse_feature(path: str, number: int, code: bytes) -> tuple[str, dict[str, str]]:
    kind, *pairs = [token.decode("utf-8", "surrogateescape") for token in split_tokens(code)]
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in options:
            problem = "is given twice" if equals else "is not of the form key=value"
            raise FormatError(path, f"`{pair[:80]}` {problem}; Moses would stop here", line=number)
        options[key] = value
    count = whole_number(options.get("num-features", "1"))
    if count is None or count > _MOST_SCORES:
        problem = f"num-features={options['num-features'][:40]} is not a number up to {_MOST_SCORES:,}"
        raise FormatError(path, problem, line=number)
    return kind, options
