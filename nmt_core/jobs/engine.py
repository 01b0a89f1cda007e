"""Where workers are: in the program itself, in processes of this machine, or as actors of Ray."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt_core.jobs.ray_workers import RayWorkers
from nmt_core.jobs.workers import OpenWorker, OwnWorker, ProcessWorkers, Workers
from nmt_core.processes import orderly_end


class Ray(NamedTuple):
    """Actors of Ray, with ``gpus`` GPUs each, on the cluster at ``address``."""

    gpus: float
    address: str | None


def engine(text: str) -> Ray | None:
    """The ``type`` of ``--engine``; None is processes of this machine."""
    name, *settings = text.split(",")
    keys = dict(setting.partition("=")[::2] for setting in settings)
    try:
        gpus = float(keys.pop("gpus", "0"))
    except ValueError:
        gpus = -1.0
    address = keys.pop("address", None)
    if name == "local" and not settings:
        return None
    if name != "ray" or keys or address == "" or not 0.0 <= gpus < math.inf:
        raise argparse.ArgumentTypeError(f"expected local, or ray with gpus=F and address=A, found {text!r}")
    return Ray(gpus, address or os.environ.get("RAY_ADDRESS"))


@contextlib.contextmanager
def open_workers(open_worker: OpenWorker, jobs: int, ray: Ray | None = None) -> Iterator[Workers[Any, Any]]:
    """``jobs`` workers, which ``open_worker(number)`` makes, for the length of the block.

    Raises ConfigError for more processes than a machine has, NmtError where Ray does not begin.
    """
    with contextlib.ExitStack() as stack:
        if ray is None and jobs == 1:
            worker = open_worker(0)
            stack.enter_context(orderly_end())
            yield OwnWorker(worker)
            return
        stack.enter_context(orderly_end())
        if ray is not None:
            yield stack.enter_context(RayWorkers(open_worker, jobs, gpus=ray.gpus, address=ray.address))
        else:
            yield stack.enter_context(ProcessWorkers(open_worker, jobs))
