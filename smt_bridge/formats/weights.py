"""Weights of a log-linear model in the form of Moses' ``[weight]`` section.

::

    [weight]
    LM0= 0.0848866
    TranslationModel0= 0.0731942 0.0173652 0.0819526 0.0585218

The same lines stand in ``moses.ini``, in the ``rescore.ini`` of Moses' n-best rescoring and in our
own weight files; lines before the first section header count too, so the header may be missing.

>>> weights = Weights({"LM0": (0.5,), "TranslationModel0": (0.25, 0.125)})
>>> weights.dot({"LM0": (-2.0,), "TranslationModel0": (-1.0, -4.0)})
-1.75
>>> print(format_weights(weights), end="")
[weight]
LM0= 0.5
TranslationModel0= 0.25 0.125
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from nmt_core.files import read_lines
from smt_bridge.errors import FormatError, WiringError

SECTION = "weight"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Weights(Mapping[str, tuple[float, ...]]):
    """Feature name to its weights, one per component, in the order of the file; never changed once made."""

    def __init__(self, values: Mapping[str, Sequence[float]]) -> None:
        self._values = {name: tuple(float(number) for number in numbers) for name, numbers in values.items()}

    def __getitem__(self, name: str) -> tuple[float, ...]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Weights({self._values!r})"

    def dot(self, features: Mapping[str, Sequence[float]]) -> float:
        """The model score: the sum over ``features`` of weight times value.

        Weights of features that are not there (such as ``UnknownWordPenalty0``, which Moses never
        lists) add nothing; neither do sparse features (``_`` in the name) without a weight.
        Raises WiringError for a dense feature without a weight, or with another number of components.
        """
        total = 0.0
        for name, values in features.items():
            weights = self._values.get(name)
            if weights is None or len(weights) != len(values):
                if weights is None and "_" in name:
                    continue
                raise _mismatch(name, weights, len(values))
            for weight, value in zip(weights, values, strict=True):
                total += weight * value
        return total

    def replaced(self, others: Mapping[str, Sequence[float]]) -> Weights:
        """These weights with those of ``others`` in their place; names that are new come last."""
        return Weights({**self._values, **others})


def _mismatch(name: str, weights: tuple[float, ...] | None, values: int) -> WiringError:
    if weights is None:
        return WiringError(f"the feature {name} has no weight; tune with this feature, or add a line `{name}= ...`")
    return WiringError(
        f"the feature {name} has {values} values but {len(weights)} weights; the weights belong to other n-best lists"
    )


def read_weights(path: str) -> Weights:
    """Read the ``[weight]`` section of ``path``; comments and other sections are passed by.

    Files without sections may also have the forms of Moses' tuners: ``name value`` (sparse weights), and
    one line per value, the lines of a feature with several values one below the other (dense weights of
    mert-moses.pl). Raises FormatError for a malformed line, a repeated name or a file without weights.
    """
    values: dict[str, tuple[float, ...]] = {}
    section, sections, last = SECTION, False, ""
    for number, raw in enumerate(read_lines(path), start=1):
        try:
            line = raw.decode("utf-8", "surrogateescape").partition("#")[0].strip(" \t\r")
            if line.startswith("["):
                section, sections = line[1:].partition("]")[0], True
            elif line and section == SECTION:
                name, weights = parse_weight_line(line if sections else _with_label(line))
                further = name == last and len(weights) == 1 and not sections
                if name in values and not further:
                    raise ValueError(f"the weights of {name} are given twice; keep one of the lines")
                values[name] = values.get(name, ()) + weights
                last = name
        except ValueError as error:
            raise FormatError(path, str(error), line=number) from error
    if not values:
        raise FormatError(path, "holds no weights; expected a [weight] section with lines such as `LM0= 0.5`")
    return Weights(values)


def _with_label(line: str) -> str:
    """``name value`` as ``name= value``; other lines as they are."""
    tokens = line.replace("\t", " ").split(" ")
    if len(tokens) == 2 and not tokens[0].endswith("=") and not _NUMBER.fullmatch(tokens[0]):
        return f"{tokens[0]}= {tokens[1]}"
    return line


def parse_weight_line(line: str) -> tuple[str, tuple[float, ...]]:
    """Split ``Name= w w w`` into the name and its weights.

    Raises ValueError, whose text says what is wrong, for any other line.
    """
    label, *numbers = [token for token in line.replace("\t", " ").split(" ") if token]
    if not label.endswith("=") or len(label) == 1 or not numbers:
        raise ValueError(f"expected `Name= 0.1 0.2` (blank after the =, none before it) but found {line[:60]!r}")
    for number in numbers:
        if not _NUMBER.fullmatch(number) or not isfinite(float(number)):
            raise ValueError(f"a weight of {label[:-1]} must be a plain number but is {number[:30]!r}")
    return label[:-1], tuple(float(number) for number in numbers)


def format_weights(weights: Mapping[str, Sequence[float]]) -> str:
    """The ``[weight]`` section with its header, numbers with nine digits (Moses reads them into float32)."""
    return f"[{SECTION}]\n" + "".join(f"{format_weight_line(name, weights[name])}\n" for name in weights)


def format_weight_line(name: str, values: Sequence[float]) -> str:
    """``Name= w w w`` without a line end."""
    return f"{name}= " + " ".join(f"{value:.9g}" for value in values)
