"""The parameters of a model in its folder, compared with what the settings describe before anything is allocated.

A model is made without memory, and each tensor gets its own when it is read, in the precision that is used: nothing is
kept in float32 for a model in bfloat16, and no first values are drawn. So models have no tensors beside their
parameters and the buffers of their state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nmt_core.base.errors import ModelError
from nmt_core.model_directory.directory import PARAMETERS, SETTINGS
from nmt_core.model_directory.sparse import described, unpacked
from nmt_core.model_directory.tensors import check_finite, open_tensors
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.interface import TranslationModel


def stored_tensors(model: TranslationModel) -> dict[str, Tensor]:
    """Parameters (float32, each tied one once) and buffers of a model, by name, on the CPU."""
    return {
        name: (tensor.detach().float() if isinstance(tensor, nn.Parameter) else tensor).cpu()
        for name, tensor in _tensors_of(model).items()
    }


def restored_model(folder: str, config: AnyConfig, sizes: Sequence[int], dtype: torch.dtype) -> TranslationModel:
    """The model of these settings with the parameters of the folder; ``sizes`` are those of its vocabularies.

    It is on the CPU. Raises ModelError where the parameters are of another model.
    """
    model = _without_memory(folder, config, sizes)
    expected = _tensors_of(model)
    tensors = _read_tensors(os.path.join(folder, PARAMETERS), expected)
    for name, tensor in expected.items():
        stored = tensors.pop(name)
        found = stored.to(dtype if stored.is_floating_point() else stored.dtype, copy=True)  # apart from the file's
        # all modules that hold the tensor have the one with memory in its place
        torch.utils.swap_tensors(tensor, nn.Parameter(found) if isinstance(tensor, nn.Parameter) else found)
    return model


def load_parameters(folder: str, model: nn.Module) -> dict[str, Tensor]:
    """The parameters that a model folder has for ``model``. Raises ModelError where it is of another model."""
    return _read_tensors(os.path.join(folder, PARAMETERS), _tensors_of(model))


def _tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters, and the buffers that belong to the model's state."""
    kept = model.state_dict().keys()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in kept}
    return dict(model.named_parameters()) | buffers


def _read_tensors(path: str, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    with open_tensors(path) as found:
        found.check(described(found, expected), hint=SETTINGS)
        _check_memory(path, expected)
        tensors = unpacked(found, expected)
    check_finite(path, tensors)
    return tensors


def _without_memory(folder: str, config: AnyConfig, sizes: Sequence[int]) -> TranslationModel:
    """A model whose tensors have shapes and types alone. Raises ModelError for absurd sizes."""
    try:
        with torch.device("meta"):
            return build_model(config, sizes[0], sizes[1], sizes[2:])
    except (RuntimeError, OverflowError, TypeError) as error:
        path = os.path.join(folder, SETTINGS)
        raise ModelError(f"{path}: describes a model of a size that is none") from error


def _check_memory(path: str, tensors: Mapping[str, Tensor]) -> None:
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        raise ModelError(f"{path}: has {size / 1e9:,.1f} GB; this machine has a memory of {memory / 1e9:,.1f} GB")
