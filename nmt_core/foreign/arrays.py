"""The arrays of a foreign checkpoint: a NumPy archive (``.npz``), of which nothing is unpickled.

Names, shapes and types are read first, from the headers alone; an array is read when it is taken, with the shape
that is expected of it. What is never taken is a part of the model that nobody has read: ``finish`` refuses it.
"""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from nmt_core.base.errors import InputError
from nmt_core.files.small import check_regular, reason

Array = npt.NDArray[np.float32]
Shape = tuple[int, ...]
_SUFFIX = ".npy"
_MOST_ARRAYS = 10_000
_MOST_UNPACKED = 64  # times the size of the file
_NAMED = 5  # arrays in a message
_DAMAGED = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


class Header(NamedTuple):
    """What an archive says of an array before its numbers."""

    shape: Shape
    dtype: np.dtype[np.generic]


class Arrays:
    """An open archive. Raises InputError for what is none, or has arrays of objects or of absurd sizes."""

    def __init__(self, path: str) -> None:
        check_regular(path)
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except _DAMAGED as error:
            raise self._damaged(error) from error
        self._headers = dict(self._read_headers())
        self._taken: set[str] = set()

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def __contains__(self, name: str) -> bool:
        return name in self._headers

    @property
    def names(self) -> list[str]:
        """The names of all arrays, in the order of the archive."""
        return list(self._headers)

    def shape(self, name: str, dimensions: int) -> Shape:
        """The shape of an array of so many dimensions, without those of size 1 that stand before them."""
        found = self._header(name).shape
        while len(found) > dimensions and found[0] == 1:
            found = found[1:]
        if len(found) != dimensions or not all(found):
            raise InputError(
                self.path, f"{name} has the shape {_shown(self._header(name).shape)}; expected {dimensions} dimensions"
            )
        return found

    def take(self, name: str, *shape: int) -> Array:
        """An array of this shape, as float32; one of shape (1, N) is taken where (N,) is expected.

        Raises InputError for an array that is missing, has another shape, or a number that is none.
        """
        if self.shape(name, len(shape)) != shape:
            problem = f"{name} has the shape {_shown(self._header(name).shape)}, expected {_shown(shape)}"
            raise InputError(self.path, problem)
        with np.errstate(over="ignore"):  # which makes them infinite
            values = self._read(name).reshape(shape).astype(np.float32)
        if not np.isfinite(values).all():
            raise InputError(self.path, f"{name} has a value that is no number; was the training divergent?")
        return values

    def text(self, name: str) -> str:
        """An array of bytes, as Marian stores its settings, as text."""
        if self._header(name).dtype.itemsize != 1:
            raise InputError(self.path, f"{name} is not made of bytes; expected text")
        return self._read(name).tobytes().rstrip(b"\0").decode("utf-8", "replace")

    def ignore(self, names: Iterable[str]) -> None:
        """These are known to be no part of the model."""
        self._taken.update(names)

    def finish(self) -> None:
        """Raise InputError where arrays are left that nobody took."""
        left = [name for name in self._headers if name not in self._taken]
        if left:
            shown = ", ".join(f"{name} {_shown(self._headers[name].shape)}" for name in left[:_NAMED])
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            raise InputError(self.path, f"has arrays that are no part of a known model: {shown}{more}")

    def _header(self, name: str) -> Header:
        if name not in self._headers:
            known = ", ".join(self.names[:_NAMED])
            raise InputError(
                self.path, f"has no array {name}; it has {known or 'none'}, ... ({len(self.names)} in all)"
            )
        return self._headers[name]

    def _read_headers(self) -> Iterator[tuple[str, Header]]:
        members = self._archive.infolist()
        if len(members) > _MOST_ARRAYS:
            raise InputError(self.path, f"has more than {_MOST_ARRAYS:,} arrays, which no model has")
        packed = sum(member.compress_size for member in members)
        unpacked = sum(member.file_size for member in members)
        if unpacked > _MOST_UNPACKED * packed + (1 << 20):
            raise InputError(self.path, f"says that it unpacks to {unpacked:,} bytes; store it with numpy.savez")
        for member in members:
            name = member.filename.removesuffix(_SUFFIX)
            with self._open(name, member) as stream:
                header = Header(*_read_header(stream))
                start = stream.tell()
            if header.dtype.hasobject or header.dtype.kind not in "fiub":
                raise InputError(self.path, f"{name} is made of {header.dtype}; expected numbers")
            size = int(np.prod([int(side) for side in header.shape], dtype=object)) * header.dtype.itemsize
            if start + size != member.file_size:
                raise InputError(self.path, f"{name} does not have as many numbers as its shape says; copy it again")
            yield name, header

    def _read(self, name: str) -> npt.NDArray[np.generic]:
        self._taken.add(name)
        with self._open(name, self._member(name)) as stream:
            values: npt.NDArray[np.generic] = npy.read_array(stream, allow_pickle=False)
        return values

    def _member(self, name: str) -> zipfile.ZipInfo:
        found = {member.filename.removesuffix(_SUFFIX): member for member in self._archive.infolist()}
        return found[name]

    @contextlib.contextmanager
    def _open(self, name: str, member: zipfile.ZipInfo) -> Iterator[BinaryIO]:
        try:
            with self._archive.open(member) as stream:
                yield cast(BinaryIO, stream)
        except InputError:
            raise
        except _DAMAGED as error:
            raise self._damaged(error, name) from error

    def _damaged(self, error: Exception, name: str = "") -> InputError:
        why = reason(error) if isinstance(error, (OSError, ValueError)) else str(error) or type(error).__name__
        of = f"{name} in it " if name else ""
        return InputError(
            self.path, f"{of}cannot be read as a NumPy archive ({why[:80]}); expected a file of numpy.savez"
        )


def _read_header(stream: BinaryIO) -> tuple[Shape, np.dtype[np.generic]]:
    """The shape and type of an array; the order of its numbers is left to NumPy."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"format {version[0]}.{version[1]} of arrays")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if not all(isinstance(side, int) and side >= 0 for side in shape):
        raise ValueError("a shape that is none")
    return tuple(shape), dtype


def _shown(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "of one number"
