"""Alignment points as Moses and the word aligners write them (``source-target``, from 0).

>>> pharaoh([(2, 1), (0, 0)])
'0-0 2-1'
"""

from __future__ import annotations

from collections.abc import Iterable

from nmt_core.base.errors import ConfigError
from nmt_core.base.numbers import whole_number

Points = list[tuple[int, int]]


def pharaoh(points: Iterable[tuple[int, int]]) -> str:
    """Points as Moses writes them: ``0-0 2-1``, ordered by source and then target."""
    return " ".join(f"{source}-{target}" for source, target in sorted(points))


def parse_pharaoh(line: str) -> Points:
    """Points from their written form. Raises ConfigError when it is something else."""
    points = []
    for point in line.split():
        source, dash, target = point.partition("-")
        first, second = whole_number(source), whole_number(target)
        if not dash or first is None or second is None:
            raise ConfigError(f"alignment point {point[:60]!r}: expected SOURCE-TARGET, such as 0-1")
        points.append((first, second))
    return points
