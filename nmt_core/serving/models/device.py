"""The device of a server: an engine and the models; how these are loaded and found."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from google.rpc import code_pb2

from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError, draining, not_allowed, unavailable
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.served import Key, ServedModel
from nmt_core.serving.telemetry import Metrics

Load = Callable[[], Mapping[str, ServedModel]]
"""Loads all models, on the server's device."""


class Route(NamedTuple):
    """A model and its name."""

    name: str
    model: ServedModel


class Device:
    """The device of that name. It does not work where an iteration lasts ``limits.stuck`` seconds.

    While ``draining`` no model is found any more.
    """

    def __init__(self, name: str, limits: Limits, metrics: Metrics) -> None:
        self._stuck_seconds, self._metrics = limits.stuck, metrics
        self.models: Mapping[str, ServedModel] = {}
        self.engine = Engine[Key](lambda key: key.model.work(key), device=name, limits=limits, metrics=metrics)
        self.draining = False
        metrics.watch(name, self.engine)
        if name.startswith("cuda"):
            metrics.memory.labels(name).set_function(functools.partial(torch.cuda.memory_allocated, name))

    async def load(self, load: Load) -> None:
        """Take the models that ``load`` makes in place of those there were.

        They are loaded and do their work once, to be warm, while the old ones answer; what those have begun
        they finish. Raises what ``load`` raises, and then nothing has changed.
        """
        begin, device = time.monotonic(), self.engine.device
        thread = ThreadPoolExecutor(1, thread_name_prefix=f"model load {device}")
        try:
            models = await asyncio.get_running_loop().run_in_executor(thread, load)
        finally:
            thread.shutdown(wait=False)  # the end of the server does not wait for what is being loaded
        for model in models.values():
            [[problem]] = await self.engine.submit(Key(model, "warm up"), {"interactive": [Item(None, 0)]})
            if problem is not None:
                raise problem
        self._metrics.load_seconds.labels(device).set(time.monotonic() - begin)
        self.models, present = models, set(models.values())
        self.engine.forget(lambda key: key.kind == "warm up" or key.model not in present)

    @property
    def works(self) -> bool:
        """The models are loaded, and the device answers in time."""
        return bool(self.models) and not self.engine.down and self.engine.stuck_for < self._stuck_seconds

    def names(self, allowed: Collection[str] | None) -> list[str]:
        """The models that a caller may use (None: all). Raises RpcError where none is served yet, or any more."""
        if self.draining:
            raise draining()
        if not self.models:
            raise unavailable("the models are still being loaded; try again in a moment", reason="LOADING")
        return [name for name in self.models if allowed is None or name in allowed]

    def find(self, name: str, allowed: Collection[str] | None) -> Route:
        """A model that a caller may use. The only one need not be named. Raises RpcError."""
        names = self.names(allowed)
        if not name and len(names) == 1:
            name = names[0]
        if name and allowed is not None and name not in allowed:
            raise not_allowed(name, names)
        if name not in names:
            asked = f"there is no model {name[:100]!r}" if name else "the request names no model"
            problem = f"{asked}; models here: {', '.join(names) or 'none that you may use'}"
            raise RpcError(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_MODEL", field="model")
        return Route(name, self.models[name])
