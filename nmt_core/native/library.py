"""The compiled kernels: found, checked and declared. Where there are none, PyTorch does the same.

They need AVX-512, one of them AMX. ``HYBRIDMT_KERNELS=none`` leaves them out.
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_float, c_int64, c_void_p
from pathlib import Path
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.native.build import LIBRARY, source_crc

CHOICE = "HYBRIDMT_KERNELS"
VERSION = 3  # of the numbers they give, for signatures, and
_TILES = 3  # of those that use tiles.h


class AttentionArguments(Structure):
    """As in kernels.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("queries", "keys", "values", "energy", "sentences", "widths")),
        *((name, c_int64) for name in ("rows", "positions", "units", "size")),
        *((name, c_void_p) for name in ("context", "weights", "scratch")),
    )


class GateArguments(Structure):
    """As in kernels.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("words", "contexts", "states")),
        *((name, c_int64) for name in ("rows", "units", "word_stride", "context_stride")),
    )


class CellArguments(Structure):
    """As in kernels.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("words", "contexts", "states")),
        *((name, c_int64) for name in ("rows", "units", "word_stride", "context_stride", "state_stride")),
        ("remember", c_float),
    )


class MaxoutArguments(Structure):
    """As in kernels.cpp."""

    _fields_ = (("pieces", c_void_p * 3), ("strides", c_int64 * 3), ("rows", c_int64), ("units", c_int64))


class NormalizerArguments(Structure):
    """As in normalizer.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("inputs", "matrix", "bias")),
        *((name, c_int64) for name in ("rows", "size", "words")),
        *((name, c_void_p) for name in ("pair_rows", "pair_words", "ends", "next")),
        *((name, c_void_p) for name in ("logits", "lanes", "shifts", "totals")),
    )


class ScoreArguments(Structure):
    """As in normalizer.cpp."""

    _fields_ = (
        ("normalizer", NormalizerArguments),
        *((name, c_int64) for name in ("rows", "words", "block", "blocks")),
        *((name, c_void_p) for name in ("scores", "tops", "most")),
    )


class ProductArguments(Structure):
    """As in products.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("inputs", "matrix", "bias")),
        *((name, c_int64) for name in ("rows", "columns", "stride", "size", "outputs")),
        *((name, c_void_p) for name in ("product", "copies", "ends", "sums")),
    )


_ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "add_exponentials": (c_void_p, c_int64, c_int64, c_int64, c_void_p),
    "normalize": (c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p),
    "attend": (POINTER(AttentionArguments),),
    "gates": (POINTER(GateArguments), c_void_p, c_void_p, c_void_p),
    "candidate": (POINTER(GateArguments), c_void_p, c_void_p, c_void_p),
    "memory_cell": (POINTER(CellArguments), c_void_p, c_void_p),
    "maxout": (POINTER(MaxoutArguments), c_void_p),
    "log_sum_exp": (POINTER(NormalizerArguments),),
    "score": (POINTER(ScoreArguments),),
    "multiply": (POINTER(ProductArguments),),
}


class Library:
    """Its functions; ``has_tiles`` says whether those that use tiles.h can be called."""

    def __init__(self, functions: ctypes.CDLL) -> None:
        self.functions = {name: getattr(functions, f"hybridmt_{name}") for name in _ARGUMENTS}
        for name, arguments in _ARGUMENTS.items():
            self.functions[name].argtypes, self.functions[name].restype = arguments, None
        self.has_tiles = bool(functions.hybridmt_has_tiles())

    @property
    def version(self) -> str:
        """Which numbers they give on this processor."""
        return f"{VERSION}+amx{_TILES}" if self.has_tiles else str(VERSION)


@functools.cache
def load(path: Path = LIBRARY) -> Library | None:
    """The library, where one was compiled of this source and runs here. Raises ConfigError for an unknown choice."""
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "none"):
        raise ConfigError(f"{CHOICE}={choice}: expected none, or nothing")
    functions = None if choice == "none" else _of_this_source(path)
    return None if functions is None or not functions.hybridmt_supported() else Library(functions)


def _of_this_source(path: Path) -> ctypes.CDLL | None:
    try:
        functions = ctypes.CDLL(str(path))
        same = functions.hybridmt_source() == source_crc()
    except (OSError, AttributeError):
        return None
    if not same and multiprocessing.parent_process() is None:  # the program itself says it, not each of its processes
        say(f"{path}: was compiled from another source and is not used; compile it: python -m nmt_core.native.build")
    return functions if same else None
