"""Weights of a log-linear model in the form of Moses' ``[weight]`` section.

::

    [weight]
    LM0= 0.0848866
    TranslationModel0= 0.0731942 0.0173652 0.0819526 0.0585218

The same lines stand in ``moses.ini``, in the ``rescore.ini`` of Moses' n-best rescoring and in our
own weight files; lines before the first section header count too, so the header may be missing.

>>> print(format_weights({"LM0": (0.5,), "TranslationModel0": (0.25, 0.125)}), end="")
[weight]
LM0= 0.5
TranslationModel0= 0.25 0.125
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Sized

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_words
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.moses.feature_functions import (
    BEFORE_2013,
    code_of,
    is_before_2013,
    parse_features,
    section_name,
    sections,
)
from smt_bridge.nbest.entry import LARGEST

SECTION = "weight"
_LABEL = re.compile(r"[^ \t\r\n#\[][^ \t\r\n]*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


_Values = dict[str, tuple[float, ...]]
Weights = Mapping[str, tuple[float, ...]]
"""Feature name to its weights, one per component, in the order of the file."""


def read_weights(path: str) -> Weights:
    """Read the weights of the features that n-best lists show.

    From a whole ``moses.ini`` that is without those of features and components that are not tuneable, which no
    list shows; otherwise as ``all_weights``.
    """
    lines = list(read_lines(path))
    weights = all_weights(lines, path=path)
    features = {feature.name: feature for feature in parse_features(lines, path=path)}
    shown = {name: features[name].listed(values) if name in features else values for name, values in weights.items()}
    return {name: values for name, values in shown.items() if values or name not in features}


def all_weights(lines: Sequence[bytes], *, path: str) -> Weights:
    """The weights of a configuration as the decoder takes them: those given, else 1 for each score of a feature.

    So does DefaultSetup of Moses' FF/Factory.cpp. A feature without weights is absent where only the decoder knows the
    number of its scores. Raises as ``given_weights``.
    """
    given = given_weights(lines, path=path)
    features = parse_features(lines, path=path)
    return {one.name: (1.0,) * one.scores for one in features if one.scores and one.name not in given} | given


def given_weights(lines: Sequence[bytes], *, path: str) -> _Values:
    """All weights that stand in the lines of ``path``.

    Those are the ``[weight]`` section, of repeated names the last, then ``[weight-overwrite]``, and for other
    names the sparse weights of the file that ``[weight-file]`` names. Files without sections may also have the forms
    of Moses' tuners: ``name value`` (sparse weights), and one line per value, the lines of a feature with several
    values one below the other (dense weights of mert-moses.pl).

    Raises FormatError for a malformed line or a file without weights, InputError for a file of sparse weights
    that is not there.
    """
    if lines and lines[0].startswith(b"{"):
        raise FormatError(path, _JSON)
    if any(section_name(code_of(line)) is not None for line in lines):
        if is_before_2013(lines):
            raise FormatError(path, BEFORE_2013)
        values = _weights_of_sections(lines, path)
    else:
        values = _weights_of_tuner(lines, path)
    if not values:
        raise FormatError(path, "holds no weights; expected a [weight] section with lines such as `LM0= 0.5`")
    return values


def _weights_of_sections(lines: Sequence[bytes], path: str) -> _Values:
    found: dict[str, list[tuple[int, str]]] = {}
    for section, number, code in sections(lines):
        found.setdefault(section or SECTION, []).append((number, code.decode("utf-8", "surrogateescape")))
    values: _Values = {}
    for number, line in (*found.get("weight-add", ()), *found.get(SECTION, ())):
        name, weights = _parsed(line, path, number)
        values[name] = weights
    for number, line in found.get("weight-overwrite", ()):
        values.update(_overwritten(line, values, path, number))
    for _, name in found.get("weight-file", ())[:1]:
        sparse = _sparse_weights(path, name)
        values = {**values, **{key: weight for key, weight in sparse.items() if key not in values}}
    return values


def _parsed(line: str, path: str, number: int) -> tuple[str, tuple[float, ...]]:
    try:
        return parse_weight_line(line)
    except ValueError as error:
        raise FormatError(path, str(error), line=number) from error


def _overwritten(line: str, values: Mapping[str, Sequence[float]], path: str, number: int) -> _Values:
    """``Name= w x`` several times in a line; ``x`` keeps the weight that is there."""
    found: dict[str, list[str]] = {}
    for token in split_words(line):
        if token.endswith("="):
            found[token[:-1]] = []
        elif found:
            name = next(reversed(found))
            place = len(found[name])
            kept = values.get(name, ())
            found[name].append(repr(kept[place]) if token == "x" and place < len(kept) else token)
    return dict(_parsed(f"{name}= {' '.join(numbers)}", path, number) for name, numbers in found.items())


def _sparse_weights(ini: str, name: str) -> _Values:
    """The file of ``[weight-file]``: ``name value`` a line; it may be beside the ini."""
    beside = os.path.join(os.path.dirname(ini), name)
    path = name if os.path.exists(name) or not os.path.exists(beside) else beside
    return _weights_of_tuner(list(read_lines(path)), path)


def _weights_of_tuner(lines: Sequence[bytes], path: str) -> _Values:
    values: _Values = {}
    last = ""
    for number, raw in enumerate(lines, start=1):
        line = raw.decode("utf-8", "surrogateescape").strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        if _NUMBERED.match(line):
            raise FormatError(path, _NAMELESS, line=number)
        sparse = _with_label(line)
        name, weights = _parsed(sparse or line.partition("#")[0], path, number)
        if name in values and not sparse:
            if name != last or len(weights) > 1:
                problem = f"the weights of {name} are given twice; keep one of the lines"
                raise FormatError(path, problem, line=number)
            weights = values[name] + weights
        values[name] = weights
        last = name
    return values


_NUMBERED = re.compile(r"F[0-9]+[ \t]+[^ \t]+$|[-+.0-9][^=]*$")
_JSON = "is JSON, perhaps a recipe; give the weights that `smt-bridge tune --output` wrote beside it"
_NAMELESS = (
    "has numbers in place of names, as `kbmira` and `mert` write them; give the moses.ini that mert-moses.pl writes, or"
    " put a name before each number"
)


def _with_label(line: str) -> str:
    """``name value`` as ``name= value`` (names of sparse features may hold ``#``); nothing for other lines."""
    tokens = split_words(line)
    if len(tokens) == 2 and not tokens[0].endswith("=") and not _NUMBER.fullmatch(tokens[0]):
        return f"{tokens[0]}= {tokens[1]}"
    return ""


def parse_weight_line(line: str) -> tuple[str, tuple[float, ...]]:
    """Split ``Name= w w w`` into the name and its weights.

    Raises ValueError, whose text says what is wrong, for any other line.
    """
    label, *numbers = split_words(line)
    if not label.endswith("=") or len(label) == 1 or not numbers:
        raise ValueError(f"expected `Name= 0.1 0.2` (blank after the =, none before it) but found {line[:60]!r}")
    for number in numbers:
        if not _NUMBER.fullmatch(number) or abs(float(number)) > LARGEST:
            raise ValueError(f"a weight of {label[:-1]} must be a plain number up to 3.4e38 but is {number[:30]!r}")
    return label[:-1], tuple(float(number) for number in numbers)


def check_weights(weights: Mapping[str, Sequence[float]]) -> None:
    """Raise ConfigError unless they are lists of numbers that Moses can hold, by names of one word."""
    for name, values in weights.items():
        if not _LABEL.fullmatch(name) or ("#" in name and len(values) > 1):
            raise ConfigError(f"{name!r:.60} is no name of a feature; expected one word, such as LM0")
        if isinstance(values, str) or not isinstance(values, Sized):
            raise ConfigError(f"the weights of {name}: expected a list of numbers, found {values!r:.60}")
        wrong = next((value for value in values if not -LARGEST <= value <= LARGEST), None)
        if wrong is not None:
            raise ConfigError(f"a weight of {name} must be a plain number up to 3.4e38 but is {wrong!r:.30}")


def format_weights(weights: Mapping[str, Sequence[float]]) -> str:
    """The ``[weight]`` section with its header, numbers with nine digits (Moses reads them into float32).

    Sparse features whose names hold ``#``, which begins a comment in a section, stand as ``name value`` in a text
    without sections. Raises ConfigError as ``check_weights``, for what could not be read again.
    """
    check_weights(weights)
    header = "" if any("#" in name for name in weights) else f"[{SECTION}]\n"
    lines = (
        f"{name} {values[0]:.9g}" if "#" in name else format_weight_line(name, values)
        for name, values in weights.items()
    )
    return header + "".join(f"{line}\n" for line in lines)


def format_weight_line(name: str, values: Sequence[float]) -> str:
    """``Name= w w w`` without a line end."""
    return f"{name}= " + " ".join(f"{value:.9g}" for value in values)
