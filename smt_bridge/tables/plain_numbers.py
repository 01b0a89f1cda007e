r"""Whether score fields of a phrase table are all written as they should be, found for many of them at once.

A plain field is `` 0.5 1e-05 3 ``: numbers with single blanks around them. A number is digits, perhaps with
a point and more digits or none, perhaps with a negative exponent; there is no sign and no point before the
first digit. That is what programs write; a field that is not plain may still be right.

No field is checked by itself. All are put in one text, and of its characters that are no digits two things are asked:
which follows which, with digits between them or without, and whether there is the right number of blanks in each line.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MOST_DIGITS = 300  # a longer number might be too large for a float
_POINT, _E, _MINUS, _BLANK, _END, _OTHER = range(0, 12, 2)  # even, so that two and a bit fit into an octet
_CHARACTERS = {_POINT: b".", _E: b"eE", _MINUS: b"-", _BLANK: b" ", _END: b"\n"}
_KIND_OF = bytes(next((kind for kind, all_ in _CHARACTERS.items() if octet in all_), _OTHER) for octet in range(256))
_SHIFT = 3
_ADJACENT, _APART = 0, 1  # without digits between them, and with some
_ALLOWED = bytes(
    kind << _SHIFT | follower | digits
    for kind, follower, digits in (
        (_POINT, _E, _APART),
        (_POINT, _BLANK, _APART),
        (_POINT, _BLANK, _ADJACENT),
        (_E, _MINUS, _ADJACENT),
        (_MINUS, _BLANK, _APART),
        (_BLANK, _POINT, _APART),
        (_BLANK, _E, _APART),
        (_BLANK, _BLANK, _APART),
        (_BLANK, _END, _ADJACENT),
        (_END, _BLANK, _ADJACENT),
    )
)


def are_plain_numbers(fields: Sequence[bytes], *, each: int) -> bool:
    """Whether every field is `` n n n `` with ``each`` numbers, all plain.

    >>> are_plain_numbers([b" 0.5 1 ", b" 1e-05 2. "], each=2), are_plain_numbers([b" 0.5  1 "], each=2)
    (True, False)
    """
    octets = np.frombuffer(b"\n%b\n " % b"\n".join(fields), np.uint8)
    places = (octets - np.uint8(ord("0")) > 9).nonzero()[0]
    characters = octets[places].tobytes()
    if characters.translate(None, b".eE-") != (b"\n" + b" " * (each + 1)) * len(fields) + b"\n ":
        return False
    kinds = np.frombuffer(characters.translate(_KIND_OF), np.uint8)
    distances = places[1:] - places[:-1]
    pairs = (kinds[:-1] << _SHIFT) | kinds[1:] | (distances > 1)
    return not pairs.tobytes().translate(None, _ALLOWED) and bool(distances.max() <= _MOST_DIGITS)
