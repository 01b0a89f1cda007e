"""The tensors of a model (safetensors, of untrusted origin): compared with what is expected before they are copied.

A file's tensors are views of the file. A model is made without memory, and each of its tensors gets its own when it is
read, in the precision that is used: nothing is kept in float32 for a model in bfloat16, and no first values are drawn.
So models have no tensors beside their parameters.

A matrix NAME of N numbers of which many are 0 is two tensors: ``NAME.mask`` has a bit for every number, row by row, the
lowest bit of a byte first, 1 where the number is not 0 (N / 8 bytes, rounded up); ``NAME.values`` has those that are
not, in the same order. This is smaller than the matrix from 3 % zeros on; at 80 % it is 0.925 bytes a number, not 4.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from nmt_core.base.errors import InputError, ModelError, NmtError
from nmt_core.files.output import PARTIAL, beside, sync
from nmt_core.files.reading import check_regular, reason
from nmt_core.model_directory.directory import SETTINGS
from nmt_core.models.build import AnyConfig, without_numbers
from nmt_core.models.interface import TranslationModel

_MASK, _VALUES = ".mask", ".values"
_WORTH_IT = 1 / 32  # of the numbers of a matrix: what the mask costs


def stored_tensors(model: TranslationModel) -> dict[str, Tensor]:
    """What a model's file has: parameters (float32, each tied one once; with many zeros: packed)."""
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        stored = parameter.detach().float().cpu()
        kept = (stored != 0) | torch.signbit(stored)  # -0 is kept, so that what is read back is the same to the bit
        if stored.dim() != 2 or int((~kept).sum()) <= _WORTH_IT * stored.numel():
            found[name] = stored
        else:
            bits = np.packbits(kept.flatten().numpy(), bitorder="little")
            found |= {name + _MASK: torch.from_numpy(bits), name + _VALUES: stored[kept]}
    return found


def restored_model(
    path: str, stored: Mapping[str, Tensor], config: AnyConfig, sizes: Sequence[int], dtype: torch.dtype
) -> TranslationModel:
    """The model of these settings with what its file has stored; ``sizes`` are the sizes of its vocabularies.

    It is on the CPU. Raises ModelError where the parameters are of another model, ConfigError where it is too large.
    """
    model = without_numbers(config, sizes)
    expected = dict(model.named_parameters())
    found = parameters_among(path, stored, expected)
    for name, tensor in expected.items():
        own = found.pop(name).to(dtype, copy=True)  # apart from the file's
        # all modules that hold the tensor have the one with memory in its place
        torch.utils.swap_tensors(tensor, nn.Parameter(own))
    return model


def parameters_among(path: str, stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``expected`` tensors of a model's file. Raises ModelError where it has others."""
    found = dict(stored)
    for name, like in expected.items():
        if name not in found and {name + _MASK, name + _VALUES} <= found.keys():
            found[name] = _unpacked(path, name, found.pop(name + _MASK), found.pop(name + _VALUES), like)
    check_tensors(path, found, expected, hint=SETTINGS)
    return found


def read_tensors(path: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, as views of it, and its metadata.

    Raises ModelError for a file that is missing, damaged or something else.
    """
    try:
        check_regular(path)
        with open(path, "rb") as stream, safe_open(f"/dev/fd/{stream.fileno()}", framework="pt") as found:
            # by its descriptor, because safetensors takes names in UTF-8 alone
            return {name: found.get_tensor(name) for name in sorted(found.keys())}, found.metadata() or {}
    except InputError as error:
        missing = f"{path}: is missing; is this a model directory that was written completely?"
        raise ModelError(str(error) if os.path.lexists(path) else missing) from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({reason(error)})") from error
    except SafetensorError as error:
        raise ModelError(f"{path}: is damaged ({error}); copy or train the model again") from error


def _unpacked(path: str, name: str, mask: Tensor, values: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.uint8 or mask.numel() != -(-like.numel() // 8):
        raise ModelError(f"{path}: {name} has a mask of another size; copy the model again")
    bits = np.unpackbits(mask.flatten().numpy(), bitorder="little").astype(bool)
    kept = torch.from_numpy(bits[: like.numel()])
    if not int(bits.sum()) == int(kept.sum()) == values.numel():
        problem = f"{name} has {values.numel():,} numbers and a mask of {int(bits.sum()):,}"
        raise ModelError(f"{path}: {problem}; copy the model again")
    tensor = torch.zeros(like.numel(), dtype=values.dtype)
    tensor[kept] = values.flatten()
    return tensor.view(like.shape)


def check_tensors(path: str, found: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, hint: str) -> None:
    """Raise ModelError where names, shapes or types differ from ``expected``, or a number is NaN or infinite."""
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or extra:
        name, problem = (missing[0], "is missing") if missing else (extra[0], "is not expected")
        raise ModelError(f"{path}: the parameter {name} {problem}; {hint} describes another model")
    for name, tensor in expected.items():
        stored = found[name]
        if stored.shape != tensor.shape:
            there, wanted = ("x".join(map(str, shape)) for shape in (stored.shape, tensor.shape))
            raise ModelError(
                f"{path}: {name} is {there} but {hint} and the vocabularies ask for {wanted}; "
                "were a vocabulary or the settings changed after training?"
            )
        if stored.dtype != tensor.dtype:
            there, wanted = (str(dtype).removeprefix("torch.") for dtype in (stored.dtype, tensor.dtype))
            raise ModelError(f"{path}: {name} has numbers of type {there}, not {wanted}")
        # a sum may be too large although each number is finite
        if stored.is_floating_point() and not torch.isfinite(stored.sum()) and not torch.isfinite(stored).all():
            raise ModelError(f"{path}: {name} holds NaN or infinite numbers; train again, or take an older model")


def write_tensors(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a file, readable as the umask says. Raises OSError."""
    with open(path, "wb") as stream:
        mode = os.fstat(stream.fileno()).st_mode & 0o777
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata=dict(metadata or {}))
    except SafetensorError as error:
        raise OSError(0, str(error), path) from error
    os.chmod(path, mode)


def save_tensors(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a file: atomic, on the disk when this returns. Raises NmtError; an older file is then unchanged."""
    temporary = beside(path, PARTIAL)
    try:
        write_tensors(temporary, tensors, metadata)
        sync(temporary)
        os.replace(temporary, path)
        sync(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        problem = f"cannot be written ({error.strerror or error}); what it held before is unchanged"
        raise NmtError(f"{path}: {problem}") from error
