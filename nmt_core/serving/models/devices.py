"""The devices of a server: each has an engine and a copy of every model; a request goes to the shortest queue."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

import torch
from google.rpc import code_pb2

from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError, draining, not_allowed, unavailable
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.served import Key, ServedModel
from nmt_core.serving.telemetry import Metrics

_Result = TypeVar("_Result")

Load = Callable[[str], Mapping[str, ServedModel]]
"""Loads all models for one device."""


class Route(NamedTuple):
    """A model, and the device that will do the work."""

    name: str
    model: ServedModel
    engine: Engine[Key]


class Devices:
    """The devices of these names. One whose iteration lasts ``limits.stuck`` gets no work while there is another.

    While ``draining`` no model is found any more.
    """

    def __init__(self, names: Sequence[str], limits: Limits, metrics: Metrics) -> None:
        self._stuck_seconds, self._metrics = limits.stuck, metrics
        self.models: dict[str, dict[str, ServedModel]] = {}
        self.engines = {
            name: Engine[Key](lambda key: key.model.work(key), device=name, limits=limits, metrics=metrics)
            for name in names
        }
        self.draining = False
        for name, engine in self.engines.items():
            metrics.watch(name, engine)
            if name.startswith("cuda"):
                metrics.memory.labels(name).set_function(functools.partial(torch.cuda.memory_allocated, name))

    async def load(self, load: Load) -> None:
        """Take the models that ``load`` makes for each device, in place of those there were.

        They are loaded and do their work once, to be warm, while the old ones answer; what those have begun
        they finish. Raises what ``load`` raises, and then nothing has changed.
        """
        parts = [self._load_for(device, load) for device in self.engines]
        loaded = await asyncio.gather(*parts, return_exceptions=True)  # no thread goes on behind an error
        self.models = dict(zip(self.engines, map(_raised, loaded), strict=True))
        present = {model for models in self.models.values() for model in models.values()}
        for engine in self.engines.values():
            engine.forget(lambda key: key.kind == "warm up" or key.model not in present)

    async def _load_for(self, device: str, load: Load) -> dict[str, ServedModel]:
        begin = time.monotonic()
        models = dict(await _in_own_thread(lambda: load(device), name=f"model load {device}"))
        for model in models.values():
            [[problem]] = await self.engines[device].submit(Key(model, "warm up"), {"interactive": [Item(None, 0)]})
            if problem is not None:
                raise problem
        self._metrics.load_seconds.labels(device).set(time.monotonic() - begin)
        return models

    @property
    def works(self) -> bool:
        """The models are loaded, and a device that answers in time is there."""
        return bool(self.models) and bool(self._working())

    def names(self, allowed: Collection[str] | None) -> list[str]:
        """The models that a caller may use (None: all). Raises RpcError where none is served yet, or any more."""
        if self.draining:
            raise draining()
        if not self.models:
            raise unavailable("the models are still being loaded; try again in a moment", reason="LOADING")
        return [name for name in next(iter(self.models.values())) if allowed is None or name in allowed]

    def find(self, name: str, allowed: Collection[str] | None) -> Route:
        """A model that a caller may use, and where it has least to do. The only one need not be named.

        Raises RpcError.
        """
        names = self.names(allowed)
        if not name and len(names) == 1:
            name = names[0]
        if name and allowed is not None and name not in allowed:
            raise not_allowed(name, names)
        if name not in names:
            asked = f"there is no model {name[:100]!r}" if name else "the request names no model"
            problem = f"{asked}; models here: {', '.join(names) or 'none that you may use'}"
            raise RpcError(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_MODEL", field="model")
        device, *others = self.engines
        if others:  # the shortest queue, and of equally short ones the one with least running
            loads = {one: (self.engines[one].waiting_tokens, self.engines[one].running_items) for one in self.engines}
            device = min(self._working() or loads, key=lambda one: loads[one])
        return Route(name, self.models[device][name], self.engines[device])

    async def close(self, timeout: float) -> None:
        """Finish what was accepted, in that time."""
        for engine in self.engines.values():
            await engine.close(timeout)

    def _working(self) -> list[str]:
        return [
            name for name, engine in self.engines.items() if not engine.down and engine.stuck_for < self._stuck_seconds
        ]


def _raised(found: _Result | BaseException) -> _Result:
    if isinstance(found, BaseException):
        raise found
    return found


async def _in_own_thread(function: Callable[[], _Result], *, name: str) -> _Result:
    """Call ``function`` in a thread that does not keep the process alive, and wait for it."""
    done: Future[_Result] = Future()
    done.set_running_or_notify_cancel()  # what is under way cannot be cancelled

    def work() -> None:
        try:
            done.set_result(function())
        except BaseException as error:  # belongs to the caller
            done.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
