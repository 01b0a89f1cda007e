"""Files of tensors (safetensors) of untrusted origin: what they hold is checked before any of it is in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nmt_core.base.errors import InputError, ModelError
from nmt_core.files.small import check_regular, reason
from nmt_core.model_directory.directory import current, replace_files

_LARGEST_HEADER = 16 << 20
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def save_tensors(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file: atomic, on the disk when this returns, readable as the umask says."""
    folder, name = os.path.split(os.path.abspath(path))
    replace_files(folder, {name: lambda place: write_tensors(place, tensors, metadata)})


def write_tensors(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a file where none is. Raises OSError."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata=dict(metadata or {}))
    except SafetensorError as error:
        raise OSError(0, str(error), path) from error


class TensorFile:
    """An open safetensors file: what it says it holds, and the tensors themselves."""

    def __init__(self, path: str, handle: Any) -> None:
        self.path, self._handle = path, handle
        self.metadata: dict[str, str] = handle.metadata() or {}
        self.names: frozenset[str] = frozenset(handle.keys())

    @property
    def most_rows(self) -> int:
        """The largest first dimension."""
        return max((shape[0] for name in self.names if (shape := self._handle.get_slice(name).get_shape())), default=0)

    def shape(self, name: str) -> list[int]:
        """That of one of them."""
        found: list[int] = self._handle.get_slice(name).get_shape()
        return found

    def tensor(self, name: str) -> Tensor:
        """One of them."""
        found: Tensor = self._handle.get_tensor(name)
        return found

    def tensors(self) -> dict[str, Tensor]:
        """All of them."""
        return {name: self.tensor(name) for name in sorted(self.names)}

    def check(self, expected: Mapping[str, Tensor], *, hint: str) -> None:
        """Compare names, shapes and types with those of ``expected``, whose values are not looked at.

        Raises ModelError with the first difference.
        """
        missing, extra = sorted(expected.keys() - self.names), sorted(self.names - expected.keys())
        if missing or extra:
            name, problem = (missing[0], "is missing") if missing else (extra[0], "is not expected")
            raise ModelError(f"{self.path}: the parameter {name} {problem}; {hint} describes another model")
        for name, tensor in expected.items():
            piece = self._handle.get_slice(name)
            if piece.get_shape() != list(tensor.shape):
                there, wanted = ("x".join(map(str, shape)) for shape in (piece.get_shape(), tensor.shape))
                raise ModelError(
                    f"{self.path}: {name} is {there} but {hint} and the vocabularies ask for {wanted}; "
                    "were a vocabulary or the settings changed after training?"
                )
            if _TYPES.get(piece.get_dtype()) != tensor.dtype:
                wanted = str(tensor.dtype).removeprefix("torch.")
                raise ModelError(f"{self.path}: {name} has numbers of type {piece.get_dtype()}, not {wanted}")


@contextmanager
def open_tensors(path: str) -> Iterator[TensorFile]:
    """Open a safetensors file. Raises ModelError for one that is missing, damaged or something else."""
    place = current(path)
    try:
        check_regular(place)
        with open(place, "rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
            if header > _LARGEST_HEADER:
                raise ModelError(f"{path}: is damaged (a header of {header:,} bytes); copy or train the model again")
            with safe_open(f"/dev/fd/{stream.fileno()}", framework="pt") as handle:  # it takes names in UTF-8 alone
                yield TensorFile(path, handle)
    except FileNotFoundError:
        raise ModelError(_missing(path)) from None
    except InputError as error:
        raise ModelError(str(error) if os.path.lexists(place) else _missing(path)) from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({reason(error)})") from error
    except SafetensorError as error:
        raise ModelError(f"{path}: is damaged ({error}); copy or train the model again") from error


def check_finite(path: str, tensors: Mapping[str, Tensor]) -> None:
    """Raise ModelError where a number is not a number, or infinite: no score would be one."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or bool(torch.isfinite(tensor.sum())):
            continue
        if not bool(torch.isfinite(tensor).all()):  # a sum may be too large
            raise ModelError(f"{path}: {name} holds NaN or infinite numbers; train again, or take an older model")


def _missing(path: str) -> str:
    return f"{path}: is missing; is this a model folder that was written completely?"
