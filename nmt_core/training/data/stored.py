"""Vectors, texts and pairs in temporary files that are read by memory map, so that they need no memory of their own.

The files have no name in any directory, and nothing is left of them whatever happens. What is pickled of them is where
they are: processes of the same machine read the same pages, and open them while the process that made them has them.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmt_core.batches.padding import Ids
from nmt_core.files.temporary import room_for_temporary
from nmt_core.text.alignment import Points
from nmt_core.text.sentence import Sentence

_ERRORS = "surrogateescape"
_KEPT = "the text that is trained on"
_BLOCK = 1 << 13  # numbers, or texts, that are written or read at a time


class _Mapped(np.ndarray[tuple[int], np.dtype[Any]]):
    """A vector in the file of ``descriptor``; parts of it, and what is computed of it, are ordinary vectors."""

    descriptor: int | None

    def __array_finalize__(self, made_of: object) -> None:
        self.descriptor = None

    def __reduce__(self) -> Any:
        if self.descriptor is None:
            return super().__reduce__()
        return _open, (f"/proc/{os.getpid()}/fd/{self.descriptor}", self.dtype)


def _open(path: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    with open(path, "rb") as file:
        return _mapped(file, dtype)


def _mapped(file: BinaryIO, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The content of an open file, of which the vector keeps a descriptor of its own."""
    descriptor = os.dup(file.fileno())
    content: Any = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if os.fstat(descriptor).st_size else b""
    vector = np.frombuffer(content, dtype).view(_Mapped)
    vector.descriptor = descriptor
    weakref.finalize(vector, os.close, descriptor)
    return vector


class _Growing:
    """Content that comes piece by piece."""

    def __init__(self) -> None:
        self._file = _temporary_file()
        weakref.finalize(self, _close, self._file)

    def write(self, content: bytes | memoryview) -> None:
        """Put something behind the rest. Raises NmtError where there is no space for it."""
        with room_for_temporary(_KEPT):
            self._file.write(content)
            self._file.flush()

    def vector(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """All of it; nothing is written afterwards."""
        return _mapped(self._file, dtype)


def _close(file: BinaryIO) -> None:
    """Close a temporary file. What could not be written to it was reported by the write that failed."""
    with contextlib.suppress(OSError):
        file.close()


def _temporary_file() -> BinaryIO:
    with room_for_temporary(_KEPT):
        return cast(BinaryIO, tempfile.TemporaryFile(prefix="hybridmt-"))


class GrowingVector:
    """A vector whose numbers come one after the other."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype, self._content, self._waiting = np.dtype(dtype), _Growing(), list[int]()

    def add(self, numbers: Iterable[int]) -> None:
        """Put numbers behind the others. Raises NmtError where there is no space for them."""
        self._waiting += numbers
        if len(self._waiting) >= _BLOCK:
            self._write()

    def finish(self) -> NDArray[Any]:
        """All of it; nothing is added afterwards."""
        self._write()
        return self._content.vector(self._dtype)

    def _write(self) -> None:
        self._content.write(np.asarray(self._waiting, self._dtype).data)
        self._waiting.clear()


class StoredTexts:
    """Texts end to end: number i is ``content[starts[i]:starts[i + 1]]``, in UTF-8."""

    def __init__(self, content: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self._content, self._starts = content, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> str:
        return str(self._content[self._starts[place] : self._starts[place + 1]].data, "utf-8", _ERRORS)

    def __iter__(self) -> Iterator[str]:
        content = self._content.data
        for first in range(0, len(self), _BLOCK):
            bounds = self._starts[first : first + _BLOCK + 1].tolist()
            for start, end in itertools.pairwise(bounds):
                yield str(content[start:end], "utf-8", _ERRORS)


class GrowingTexts:
    """Texts that come one after the other."""

    def __init__(self) -> None:
        self._content, self._starts = _Growing(), GrowingVector(np.int64)
        self._starts.add([0])
        self._length, self._waiting = 0, list[bytes]()

    def add(self, text: str) -> None:
        """The next text. Raises NmtError where there is no space for it."""
        content = text.encode("utf-8", _ERRORS)
        self._length += len(content)
        self._starts.add([self._length])
        self._waiting.append(content)
        if len(self._waiting) >= _BLOCK:
            self._write()

    def finish(self) -> StoredTexts:
        """All texts; none is added afterwards."""
        self._write()
        return StoredTexts(self._content.vector(np.dtype(np.uint8)), self._starts.finish())

    def _write(self) -> None:
        self._content.write(b"".join(self._waiting))
        self._waiting.clear()


TextPair = tuple[str, str] | tuple[str, str, Points]


@dataclass(frozen=True)
class Sentences:
    """Many sentences end to end; sentence i is ``ids[starts[i]:starts[i + 1]]``, with its text where that is kept.

    ``factors`` has one more array like ``ids`` for each factor beside the word.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    texts: StoredTexts | None = None
    factors: tuple[NDArray[np.int32], ...] = ()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> Sentence:
        start, end = self.starts[index], self.starts[index + 1]
        ids, *factors = (column[start:end].tolist() for column in (self.ids, *self.factors))
        return Sentence(ids, None if self.texts is None else self.texts[index], factors)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words per sentence, without ``</s>``."""
        return np.diff(self.starts)

    def words_of(self, indices: NDArray[np.int64]) -> int:
        """The number of words of some sentences, without their ``</s>``."""
        return int((self.starts[indices + 1] - self.starts[indices]).sum())


class Collector:
    """Gathers sentences, packing them as it goes, with their factors, and with their texts where these are kept."""

    def __init__(self, *, keep_text: bool = False) -> None:
        self._ids, self._starts = GrowingVector(np.int32), GrowingVector(np.int64)
        self._starts.add([0])
        self._texts = GrowingTexts() if keep_text else None
        self._factors: list[GrowingVector] = []
        self._sentences = self._words = 0

    def __len__(self) -> int:
        return self._sentences

    def add(self, words: Ids, text: str = "") -> None:
        """The next sentence."""
        self._sentences += 1
        self._words += len(words)
        self._ids.add(words)
        self._starts.add([self._words])
        if self._texts is not None:
            self._texts.add(text)
        if isinstance(words, Sentence):
            self._factors = self._factors or [GrowingVector(np.int32) for _ in words.factors]
            for vector, column in zip(self._factors, words.factors, strict=True):
                vector.add(column)

    def sentences(self) -> Sentences:
        """All of them; none is added afterwards."""
        texts = None if self._texts is None else self._texts.finish()
        return Sentences(self._ids.finish(), self._starts.finish(), texts, tuple(one.finish() for one in self._factors))


@dataclass(frozen=True)
class StoredPairs:
    """Sources and targets of equal number; ``left`` are those that count, or all."""

    source: StoredTexts
    target: StoredTexts
    left: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.source) if self.left is None else int(self.left.sum())

    def __iter__(self) -> Iterator[TextPair]:
        return zip(self.sources(), self.targets(), strict=True)

    def sources(self) -> Iterator[str]:
        """The source sides."""
        return self._left(self.source)

    def targets(self) -> Iterator[str]:
        """The target sides."""
        return self._left(self.target)

    def without(self, places: NDArray[np.int64]) -> tuple[StoredPairs, list[TextPair]]:
        """The others, and these, in the order of the text; of pairs of which all count."""
        left = np.ones(len(self.source), dtype=bool)
        left[places] = False
        held = [(self.source[place], self.target[place]) for place in np.flatnonzero(~left).tolist()]
        return replace(self, left=left), list(held)

    def _left(self, items: Iterable[str]) -> Iterator[str]:
        return iter(items) if self.left is None else itertools.compress(items, self.left)


def store_pairs(pairs: Iterable[TextPair]) -> StoredPairs:
    """Read all pairs. Raises NmtError where there is no space for them."""
    source, target = GrowingTexts(), GrowingTexts()
    for source_text, target_text, *_ in pairs:
        source.add(source_text)
        target.add(target_text)
    return StoredPairs(source.finish(), target.finish())
