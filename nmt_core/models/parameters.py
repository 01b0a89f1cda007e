"""The parameters of a model in its folder, compared with what the settings describe before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nmt_core.errors import ModelError
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.file_names import PARAMETERS, SETTINGS
from nmt_core.models.interface import TranslationModel
from nmt_core.models.sparse import described, unpacked
from nmt_core.models.tensors import check_finite, open_tensors


def stored_tensors(model: TranslationModel) -> dict[str, Tensor]:
    """Parameters (float32, each tied one once) and buffers of a model, by name, on the CPU."""
    parameters = {name: tensor.detach().float().cpu() for name, tensor in model.named_parameters()}
    return parameters | {name: tensor.detach().cpu() for name, tensor in _buffers(model).items()}


def restored_model(folder: str, config: AnyConfig, sizes: Sequence[int]) -> TranslationModel:
    """The model of these settings with the parameters of the folder; ``sizes`` are those of its vocabularies.

    Raises ModelError where the parameters are of another model.
    """
    tensors = _read_tensors(os.path.join(folder, PARAMETERS), _described(folder, config, sizes))
    model = build_model(config, sizes[0], sizes[1], sizes[2:])
    with torch.no_grad():
        for name, tensor in _all_tensors(model).items():
            tensor.copy_(tensors[name])
    return model


def load_parameters(folder: str, model: nn.Module) -> dict[str, Tensor]:
    """The parameters that a model folder has for ``model``. Raises ModelError where it is of another model."""
    return _read_tensors(os.path.join(folder, PARAMETERS), _all_tensors(model))


def _all_tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters()) | _buffers(model)


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """The buffers that belong to the model's state."""
    kept = model.state_dict().keys()
    return {name: buffer for name, buffer in model.named_buffers() if name in kept}


def _read_tensors(path: str, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    with open_tensors(path) as found:
        found.check(described(found, expected), hint=SETTINGS)
        _check_memory(path, expected)
        tensors = unpacked(found, expected)
    check_finite(path, tensors)
    return tensors


def _described(folder: str, config: AnyConfig, sizes: Sequence[int]) -> dict[str, Tensor]:
    """Names, shapes and types of a model's tensors, which take no memory. Raises ModelError for absurd sizes."""
    try:
        with torch.device("meta"):
            model = build_model(config, sizes[0], sizes[1], sizes[2:])
    except (RuntimeError, OverflowError, TypeError) as error:
        path = os.path.join(folder, SETTINGS)
        raise ModelError(f"{path}: describes a model of a size that is none") from error
    return _all_tensors(model)


def _check_memory(path: str, tensors: Mapping[str, Tensor]) -> None:
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        raise ModelError(f"{path}: has {size / 1e9:,.1f} GB; this machine has a memory of {memory / 1e9:,.1f} GB")
