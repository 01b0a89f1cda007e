"""What Moses' tuners write, given its names back.

``kbmira`` and mert-moses.pl number the dense values (``F0 0.5``) and name the sparse features (``wt_a~b 0.1``);
``mert`` writes a row of numbers (``weights.txt``). The numbers count the values of ``features.dat``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nmt_core.base.messages import counted
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.nbest.entry import LARGEST, is_usable
from smt_bridge.tuning.moses_dat import dense_places
from smt_bridge.tuning.pool import Floats, NbestPool

_NUMBERED = re.compile(r"F([0-9]{1,9})")


def read_tuner_weights(path: str, pool: NbestPool) -> Floats:
    """Weights in the order of the pool's columns; sparse features that ``pool`` does not have are left out.

    Raises FormatError for another kind of file, and WiringError where the numbers are not those of ``pool``.
    """
    dense = dense_places(pool)
    names = {column.name: place for place, column in enumerate(pool.columns) if place not in set(dense)}
    weights = np.zeros(len(pool.columns))
    seen: set[int] = set()
    for line, name, value in _pairs(path):
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            if name in names:
                weights[names[name]] = value
            continue
        number = int(numbered[1])
        if number >= len(dense):
            problem = f"has a weight F{number}, but there are {len(dense)} dense values; is it of other files?"
            raise FormatError(path, problem, line=line)
        weights[dense[number]] = value
        seen.add(number)
    if len(seen) != len(dense):
        raise WiringError(
            f"{path}: has {counted(len(seen), 'numbered weight')} for {counted(len(dense), 'dense value')};"
            " is it of other files?"
        )
    return weights


def _pairs(path: str) -> Iterator[tuple[int, str, float]]:
    """The line, the name (``F0`` where the numbers stand in a row) and the weight."""
    row = 0
    for line, raw in enumerate(read_lines(path), start=1):
        tokens = [token.decode("utf-8", "surrogateescape") for token in raw.split()]
        numbers = [_number(token) for token in tokens]
        if len(tokens) == 2 and numbers[0] is None and numbers[1] is not None:
            yield line, tokens[0], numbers[1]
            continue
        for number in numbers:
            if number is None:
                problem = "expected `F0 0.5`, `name 0.5` or a row of numbers, as kbmira and mert write them"
                problem += f", up to {LARGEST:.2g}"
                raise FormatError(path, problem, line=line)
            yield line, f"F{row}", number
            row += 1


def _number(token: str) -> float | None:
    try:
        number = float(token)
    except ValueError:
        return None
    return number if is_usable(number) and "_" not in token else None
