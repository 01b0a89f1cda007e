"""Pickles of plain values: dictionaries, lists, tuples, text, numbers, true, false and nothing else.

GroundHog and early Nematus store settings and vocabularies as pickles. A pickle is a program that may call anything;
here the instructions that look something up, call it or build an object are missing: a file that has one is refused.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

from nmt_core.base.errors import InputError
from nmt_core.files.reading import read_small

_ALLOWED = (
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT STRING BINSTRING "
    "SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 "
    "TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET"
)
_MISTAKES = (
    *(pickle.UnpicklingError, EOFError, ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError),
    *(struct.error, RecursionError, MemoryError, AssertionError),
)


class _Refused(Exception):
    """An instruction that is not allowed."""


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler that is written in Python, with those instructions alone that make plain values."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise _Refused

    def persistent_load(self, identifier: Any) -> Any:
        raise _Refused


def _refuse(_: Any) -> None:
    raise _Refused


_PlainUnpickler.dispatch = dict.fromkeys(range(256), _refuse) | {
    code: pickle._Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in _ALLOWED.split())
}


def read_pickle(path: str) -> Any:
    """The plain value in a pickle; strings of Python 2 are text, bytes that are not UTF-8 surrogates in it.

    Raises InputError for one that holds anything else, and for what is no pickle.
    """
    content = read_small(path, regular=True)
    try:
        return _PlainUnpickler(io.BytesIO(content), encoding="utf-8", errors="surrogateescape").load()
    except _Refused as error:
        problem = "is a pickle that holds more than dictionaries, lists, text and numbers, and is not opened"
        raise InputError(path, f"{problem}; write it as JSON with the program that made it") from error
    except _MISTAKES as error:
        raise InputError(path, "is not a whole pickle; copy it again, or give the file as JSON") from error
