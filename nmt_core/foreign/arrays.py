"""The arrays of a foreign checkpoint: a NumPy archive (``.npz``), of which nothing is unpickled.

An array is taken with the shape that is expected of it. What is never taken is a part of the model that nobody has
read: ``finish`` rejects it.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import InputError
from nmt_core.files.reading import check_regular, reason

Array = npt.NDArray[np.float32]
Shape = tuple[int, ...]
_MOST_ARRAYS = 10_000
_MOST_UNPACKED = 64  # times the size of the file
_NAMED = 5  # arrays in a message
_DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


class Arrays:
    """The arrays of an archive. Raises InputError for another file, or arrays of objects or of absurd sizes."""

    def __init__(self, path: str) -> None:
        check_regular(path)
        self.path = path
        self._arrays = dict(self._read())
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    @property
    def names(self) -> list[str]:
        """The names of all arrays, in the order of the archive."""
        return list(self._arrays)

    def shape(self, name: str, dimensions: int) -> Shape:
        """The shape of an array of so many dimensions, without those of size 1 that stand before them."""
        found = self._array(name).shape
        while len(found) > dimensions and found[0] == 1:
            found = found[1:]
        if len(found) != dimensions or not all(found):
            problem = f"{name} has the shape {_shown(self._array(name).shape)}; expected {dimensions} dimensions"
            raise InputError(self.path, problem)
        return found

    def take(self, name: str, *shape: int) -> Array:
        """An array of this shape, as float32; one of shape (1, N) is taken where (N,) is expected.

        Raises InputError for an array that is missing, has another shape, or a number that is none.
        """
        if self.shape(name, len(shape)) != shape:
            problem = f"{name} has the shape {_shown(self._array(name).shape)}, expected {_shown(shape)}"
            raise InputError(self.path, problem)
        with np.errstate(over="ignore"):  # which makes them infinite
            values = self._array(name).reshape(shape).astype(np.float32)
        self._taken.add(name)
        if not np.isfinite(values).all():
            raise InputError(self.path, f"{name} has a value that is no number; was the training divergent?")
        return values

    def text(self, name: str) -> str:
        """An array of bytes, as Marian stores its settings, as text."""
        if self._array(name).dtype.itemsize != 1:
            raise InputError(self.path, f"{name} is not made of bytes; expected text")
        self._taken.add(name)
        return self._array(name).tobytes().rstrip(b"\0").decode("utf-8", "replace")

    def ignore(self, names: Iterable[str]) -> None:
        """These are known to be no part of the model."""
        self._taken.update(names)

    def finish(self) -> None:
        """Raise InputError where arrays are left that nobody took."""
        left = [name for name in self._arrays if name not in self._taken]
        if left:
            shown = ", ".join(f"{name} {_shown(self._arrays[name].shape)}" for name in left[:_NAMED])
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            raise InputError(self.path, f"has arrays that are no part of a known model: {shown}{more}")

    def _array(self, name: str) -> npt.NDArray[np.generic]:
        if name not in self._arrays:
            known = ", ".join(self.names[:_NAMED])
            problem = f"has no array {name}; it has {known or 'none'}, ... ({len(self.names)} in all)"
            raise InputError(self.path, problem)
        return self._arrays[name]

    def _read(self) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
        name = ""
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._check_sizes(archive.infolist())
            with np.load(self.path, allow_pickle=False) as arrays:
                for name in arrays.files:
                    array = arrays[name]
                    if not isinstance(array, np.ndarray):
                        raise InputError(self.path, f"{name} is not an array; expected a file of numpy.savez")
                    if array.dtype.kind not in "fiub":
                        raise InputError(self.path, f"{name} is made of {array.dtype}; expected numbers")
                    yield name, array
        except _DAMAGED as error:
            why = reason(error) if isinstance(error, (OSError, ValueError)) else str(error) or type(error).__name__
            problem = f"cannot be read as a NumPy archive ({why[:80]}); expected a file of numpy.savez"
            raise InputError(self.path, f"{name} in it {problem}" if name else problem) from error

    def _check_sizes(self, members: list[zipfile.ZipInfo]) -> None:
        """Raise InputError, before anything is read, for an archive that says it is absurdly large."""
        if len(members) > _MOST_ARRAYS:
            raise InputError(self.path, f"has more than {_MOST_ARRAYS:,} arrays, which no model has")
        stored = sum(member.compress_size for member in members)
        size = sum(member.file_size for member in members)
        if size > _MOST_UNPACKED * stored + (1 << 20):
            raise InputError(self.path, f"says that it unpacks to {size:,} bytes; store it with numpy.savez")


def _shown(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "of one number"
