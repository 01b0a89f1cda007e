"""Options of all commands that score with models, and what they mean for worker processes."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.files import InputFile

if TYPE_CHECKING:
    from smt_bridge.scorers import ScorerOptions

_MOST_ON_A_GPU = 8  # processes, and
_MEMORY = 8 << 30  # bytes of its memory for each


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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
    group.add_argument("--devices", metavar="LIST", help="such as cuda:0,cuda:1 or cpu (default: what there is)")
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="worker processes, each with its own models (one per core; per GPU up to eight, one for each 8 GiB)",
    )


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
    """How many worker processes to use. Raises ConfigError."""
    if args.jobs is not None:
        if args.jobs < 1:
            raise ConfigError("--jobs must be at least 1")
        return int(args.jobs)
    if not specs or all(spec.startswith("grpc:") for spec in specs):
        return 1
    devices, cores = list_devices(args), len(os.sched_getaffinity(0))
    return cores if devices == ["cpu"] else len(devices) * _processes_each(devices, cores)


def _processes_each(devices: list[str], cores: int) -> int:
    """For one device. What a process prepares in a second, some 30,000 phrase pairs, does not keep a GPU busy."""
    import torch

    from nmt_core.device import choose_device

    chosen = [choose_device(name) for name in devices]
    if any(device.type != "cuda" for device in chosen):
        return 1
    memory = min(int(torch.cuda.get_device_properties(device).total_memory) for device in chosen)
    return max(1, min(_MOST_ON_A_GPU, memory // _MEMORY, cores // len(devices)))


def list_devices(args: argparse.Namespace) -> list[str]:
    """The devices to use; with several GPUs, all."""
    if args.devices:
        return [name.strip() for name in args.devices.split(",")]
    if not os.path.exists("/dev/nvidiactl"):  # without a GPU torch, which takes seconds to load, is not asked
        return ["cpu"]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def scorer_options(args: argparse.Namespace, worker: int) -> ScorerOptions:
    """What worker number ``worker`` uses: its device, and on a CPU one thread, so that all work alike."""
    from smt_bridge.scorers import ScorerOptions

    devices = list_devices(args)
    device = devices[worker % len(devices)]
    return ScorerOptions(device, args.dtype, args.softmax, 1 if device == "cpu" else None)
