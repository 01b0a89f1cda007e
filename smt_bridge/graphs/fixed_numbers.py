"""Numbers with a fixed number of decimals, as ``printf`` writes them, read many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_ZERO, _POINT, _MINUS = b"0.-"
_MOST_DIGITS = 15  # which a float holds
_AT_ONCE = 8192  # numbers, so that what is computed of them stays in the processor's cache

Places = npt.NDArray[np.int64]


def fixed_numbers(
    octets: npt.NDArray[np.uint8], begins: Places, ends: Places, *, decimals: int
) -> npt.NDArray[np.float64] | None:
    r"""The numbers in ``octets[begin:end]``, of any shape; None where one is not ``-12.345`` with so many decimals.

    With ``decimals=0`` there is no point. Numbers are correctly rounded.

    >>> fixed_numbers(np.frombuffer(b"-12.50 0.25", np.uint8), np.array([0, 7]), np.array([6, 11]), decimals=2)
    array([-12.5 ,   0.25])
    """
    numbers = np.empty(begins.size)
    flat_begins, flat_ends = begins.ravel(), ends.ravel()
    for first in range(0, begins.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        found = _read(octets, flat_begins[part], flat_ends[part], decimals)
        if found is None:
            return None
        numbers[part] = found
    return numbers.reshape(begins.shape)


def _read(octets: npt.NDArray[np.uint8], begins: Places, ends: Places, decimals: int) -> npt.NDArray[np.float64] | None:
    if (begins >= ends).any():
        return None
    negative = octets[begins] == _MINUS
    digits = ends - begins - negative - (decimals > 0)
    if digits.min() <= decimals or digits.max() > _MOST_DIGITS:
        return None
    if decimals and (octets[ends - 1 - decimals] != _POINT).any():
        return None
    total = np.zeros(begins.shape, np.int64)
    for place in range(int(digits.max())):
        at = ends - (1 + place + (decimals > 0 and place >= decimals))
        if place <= decimals:
            digit = octets[at] - np.uint8(_ZERO)
        else:
            digit = np.where(place < digits, octets[np.maximum(at, 0)] - np.uint8(_ZERO), np.uint8(0))
        if digit.max() > 9:
            return None
        total += digit * np.int64(10**place)
    numbers: npt.NDArray[np.float64] = np.where(negative, -total, total) / 10.0**decimals
    return numbers
