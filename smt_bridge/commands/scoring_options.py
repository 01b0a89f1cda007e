"""Options of all commands that score with models, and what they mean for worker processes."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
from typing import TYPE_CHECKING

from nmt_core.base.errors import ConfigError
from nmt_core.files import InputFile
from smt_bridge.scorers import REMOTE

if TYPE_CHECKING:
    from smt_bridge.scorers import ScorerOptions


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command whose worker processes score."""
    group = _add_arithmetic(parser)
    group.add_argument("--devices", metavar="LIST", help="such as cuda:0,cuda:1 or cpu (default: what there is)")
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="worker processes, each with its own models (one per core, or per GPU)",
    )


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command that searches and scores itself, on one device."""
    _add_arithmetic(parser).add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")


def _add_arithmetic(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("how to score")
    group.add_argument(
        "--dtype", default="float32", help="float32, or bfloat16, on a GPU tf32: faster, not exact (float32)"
    )
    group.add_argument(
        "--softmax",
        default="full",
        metavar="full|none|N",
        help="normalise over all words; over none, for models trained with self_normalization; or over the N most"
        " frequent and those met. Only full is exact (full)",
    )
    return group


def add_backoff_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--unknown-backoff",
        type=InputFile,
        metavar="LM.arpa",
        help="target words unknown to a model get their shares of the probability of <unk>, by the unigrams of this"
        " model of the target language; not those of reverse models",
    )


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


def search_options(args: argparse.Namespace) -> ScorerOptions:
    """What the only process uses: its device with all threads, for the search and what scores its lists."""
    from smt_bridge.scorers import ScorerOptions

    return ScorerOptions(args.device, args.dtype, args.softmax)


def scorer_options(args: argparse.Namespace, worker: int) -> ScorerOptions:
    """What worker number ``worker`` uses: its device, and on a CPU one thread, so that all work alike."""
    from smt_bridge.scorers import ScorerOptions

    devices = list_devices(args)
    device = devices[worker % len(devices)]
    return ScorerOptions(device, args.dtype, args.softmax, 1 if device == "cpu" else None)
