r"""Whether score fields of a phrase table are all written as they should be, found for many of them at once.

A plain field is `` 0.5 1e-05 3 ``: numbers with single blanks around them. A number is digits, perhaps with
a point and more digits or none, perhaps with a negative exponent; there is no sign and no point before the
first digit. That is what programs write; a field that is not plain may still be right.

No field is checked by itself. All are put in one text, whose characters are sorted into kinds, and two
things are asked: which kind follows which, and, with the digits left out, which kind follows which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

_MOST_DIGITS = 300  # a longer number might be too large for a float
_DIGIT, _POINT, _E, _MINUS, _BLANK, _END, _OTHER = range(7)
_CHARACTERS = {_DIGIT: b"0123456789", _POINT: b".", _E: b"eE", _MINUS: b"-", _BLANK: b" ", _END: b"\n"}
_KIND_OF = bytes(next((kind for kind, all_ in _CHARACTERS.items() if octet in all_), _OTHER) for octet in range(256))
_KINDS = 8


def _pairs(allowed: Mapping[int, Sequence[int]]) -> bytes:
    """Two kinds in a row as one octet."""
    return bytes(kind * _KINDS + follower for kind, followers in allowed.items() for follower in followers)


_ALLOWED = _pairs(
    {
        _DIGIT: (_DIGIT, _POINT, _E, _BLANK),
        _POINT: (_DIGIT, _BLANK),
        _E: (_MINUS,),
        _MINUS: (_DIGIT,),
        _BLANK: (_DIGIT, _END),
        _END: (_BLANK,),
    }
)
_ALLOWED_WITHOUT_DIGITS = _pairs(
    {
        _POINT: (_E, _BLANK),
        _E: (_MINUS,),
        _MINUS: (_BLANK,),
        _BLANK: (_POINT, _E, _BLANK, _END),
        _END: (_BLANK,),
    }
)


def are_plain_numbers(fields: Sequence[bytes], *, each: int) -> bool:
    """Whether every field is `` n n n `` with ``each`` numbers, all plain.

    >>> are_plain_numbers([b" 0.5 1 ", b" 1e-05 2. "], each=2), are_plain_numbers([b" 0.5  1 "], each=2)
    (True, False)
    """
    text = b"\n%b\n " % b"\n".join(fields)
    kinds = np.frombuffer(text.translate(_KIND_OF), np.uint8)
    if not _only(_ALLOWED, kinds):
        return False
    places = np.flatnonzero(kinds != _DIGIT)
    others = kinds[places]
    if not _only(_ALLOWED_WITHOUT_DIGITS, others):
        return False
    borders = others >= _BLANK
    ends = np.flatnonzero(others[borders] == _END)
    return bool((np.diff(ends) == each + 2).all() and np.diff(places[borders]).max() <= _MOST_DIGITS)


def _only(allowed: bytes, kinds: npt.NDArray[np.uint8]) -> bool:
    """Whether no kind is followed by one that may not follow it."""
    pairs = kinds[:-1] * np.uint8(_KINDS) + kinds[1:]
    return not pairs.tobytes().translate(None, allowed)
