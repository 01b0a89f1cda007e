"""What a user writes for a model, and what it means: folders or a server, and worker processes and their devices.

======================== ====================================================

``DIR``                  the model in a folder
``DIR,DIR``              an ensemble: the models' word probabilities are averaged
``grpc:HOST:PORT``       a running ``nmt-core serve`` and its default model
``grpc:HOST:PORT/MODEL`` the same, and the model of that name
======================== ====================================================
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import whole_number

REMOTE = "grpc:"


class ModelOptions(NamedTuple):
    """How a model in a folder is used; a server has its own ways.

    ``threads`` of PyTorch are set where the model is loaded; None leaves its choice. Scores with another ``dtype`` than
    float32 or another ``softmax`` than full are not exact, and their signature says so. ``unknown_backoff`` is an ARPA
    file, whose unigrams share out the probability of ``<unk>`` (``nmt_core.inference.scoring.unknown_backoff``).
    """

    device: str = "auto"
    dtype: str = "float32"
    softmax: str = "full"
    threads: int | None = None
    unknown_backoff: str | None = None


def check_specs(specs: Iterable[str]) -> None:
    """Raise ConfigError for a malformed spec and a folder that is not there; nothing is loaded or asked."""
    for spec in specs:
        if spec.startswith(REMOTE):
            server_address(spec)
        else:
            model_folders(spec)


def model_folders(spec: str) -> list[str]:
    """The folders of a local spec; raises ConfigError where one is not there."""
    folders = spec.split(",")
    for folder in folders:
        if not os.path.isdir(folder):
            raise ConfigError(
                f"{folder or spec!r} is not a model folder; expected DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT"
            )
    return folders


def server_address(spec: str) -> tuple[str, str]:
    """HOST:PORT and the model's name, empty for the default one; raises ConfigError for a malformed spec."""
    address, _, model = spec.removeprefix(REMOTE).partition("/")
    host, _, port = address.rpartition(":")
    if not host or whole_number(port) is None:
        raise ConfigError(f"{spec!r} is not an address; expected grpc:HOST:PORT or grpc:HOST:PORT/MODEL")
    return address, model


def count_jobs(args: argparse.Namespace, specs: list[str]) -> int:
    """How many worker processes to use.

    Raises ConfigError, and ModuleNotFoundError where the models of ``specs`` need a package that is not installed.
    """
    remote = [spec.startswith(REMOTE) for spec in specs]
    for package in ("torch",) * (not all(remote)) + ("grpc",) * any(remote):
        if importlib.util.find_spec(package) is None:  # found before workers are started
            raise ModuleNotFoundError(name=package)
    _check_names(args.devices)
    if args.jobs is not None:
        if args.jobs < 1:
            raise ConfigError("--jobs must be at least 1")
        return int(args.jobs)
    if all(remote):
        return 1
    devices = list_devices(args)
    if devices == ["cpu"]:
        return len(os.sched_getaffinity(0))
    return len({_checked(name) for name in devices})


def _check_names(devices: str | None) -> None:
    """Raise ConfigError for a list of something else than devices."""
    for name in devices.split(",") if devices else ():
        if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", name.strip(), re.ASCII):
            raise ConfigError(f"--devices {devices}: expected auto, cpu, cuda or cuda:N, with commas, not '{name}'")


def _checked(device: str) -> str:
    """Raise ConfigError where it is not there."""
    from nmt_core.device import choose_device

    return str(choose_device(device))


def list_devices(args: argparse.Namespace) -> list[str]:
    """The devices to use; with several GPUs, all."""
    if args.devices:
        return [name.strip() for name in args.devices.split(",")]
    if not os.path.exists("/dev/nvidiactl"):  # without a GPU torch, which takes seconds to load, is not asked
        return ["cpu"]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def search_options(args: argparse.Namespace) -> ModelOptions:
    """What the only process uses: its device with all threads, for the search and what scores its lists."""
    return ModelOptions(args.device, args.dtype, args.softmax)


def worker_options(args: argparse.Namespace, worker: int) -> ModelOptions:
    """What worker number ``worker`` uses: its device, and on a CPU one thread, so that all work alike."""
    devices = list_devices(args)
    device = devices[worker % len(devices)]
    return ModelOptions(device, args.dtype, args.softmax, 1 if device == "cpu" else None)
