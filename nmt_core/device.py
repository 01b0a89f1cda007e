"""Where tensors live and how precise they are, from the words of the command line."""

from __future__ import annotations

import torch

from nmt_core.errors import ConfigError

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


def choose_device(name: str) -> torch.device:
    """``auto`` is the first GPU if there is one. Raises ConfigError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"--device {name}: expected auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {name}: this machine has {torch.cuda.device_count()} GPUs that torch can use")
    return device


def choose_dtype(name: str) -> torch.dtype:
    """Raises ConfigError for an unknown precision."""
    try:
        return DTYPES[name]
    except KeyError:
        raise ConfigError(f"--dtype {name}: expected {', '.join(DTYPES)}") from None
