"""New models, tokens and logs while the server runs: at SIGHUP, and when the model folders have changed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nmt_core.base.errors import NmtError
from nmt_core.serving.models.devices import Load
from nmt_core.serving.off_loop import in_own_thread
from nmt_core.serving.server import NmtServer
from nmt_core.serving.telemetry import Metrics

_log = logging.getLogger(__name__)

State = tuple[tuple[str, int, int, int], ...]
"""Names, places, times of change and sizes of files."""


@dataclass(frozen=True)
class Sources:
    """What is read anew.

    ``folders`` names the model folders, ``loader`` makes what loads them, ``others`` are the rest, which is small.
    """

    folders: Callable[[], Mapping[str, Sequence[str]]]
    loader: Callable[[], Load]
    others: Sequence[Callable[[], object]] = ()


class Reloader:
    """Models are loaded one time after the other; what goes wrong is logged, and all stays as it was."""

    def __init__(self, server: NmtServer, sources: Sources, metrics: Metrics | None = None) -> None:
        self._server, self._sources, self._metrics = server, sources, metrics
        self._wanted = asyncio.Event()
        self._seen = _state(sources)

    def request(self) -> None:
        """Exchange now what is small, and the models soon; called by a signal.

        Tokens that are revoked do not wait until large models are loaded.
        """
        for step in self._sources.others:
            with self._told("what there was stays"):
                step()
        self._wanted.set()

    async def run(self, every: float | None) -> None:
        """Exchange the models when it is requested, and look at the folders after so many seconds each time."""
        before = self._seen
        while True:
            try:
                await asyncio.wait_for(self._wanted.wait(), every)
            except TimeoutError:
                now = await self._look()
                settled, before = now == before, now
                if not settled or now == self._seen:  # files are still being written, or nothing is new
                    continue
            self._wanted.clear()
            await self._exchange_models()
            before = self._seen

    async def _exchange_models(self) -> None:
        with self._told("the models there were stay"):
            self._seen = await self._look()
            await self._server.load(self._sources.loader())
            _log.warning("reload: the models were exchanged")
            self._count("done")

    async def _look(self) -> State:
        """What the folders hold now; a file system that does not answer stops nobody."""
        return await in_own_thread(lambda: _state(self._sources), name="look at the models")

    @contextlib.contextmanager
    def _told(self, stays: str) -> Iterator[None]:
        """What goes wrong inside is logged and counted."""
        try:
            yield
        except NmtError as error:
            _log.error("reload: %s; %s", error, stays)
            self._count("failed")
        except Exception:
            _log.exception("reload failed; %s", stays)
            self._count("failed")

    def _count(self, outcome: str) -> None:
        if self._metrics is not None:
            self._metrics.reloads.labels(outcome).inc()


def _state(sources: Sources) -> State:
    try:
        folders = sorted({folder for parts in sources.folders().values() for folder in parts})
    except NmtError:  # gone for a moment; loading says what is wrong
        folders = []
    return tuple(one for folder in folders for one in _files(folder))


def _files(folder: str) -> list[tuple[str, int, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.stat()) for entry in entries if entry.is_file()]
    except OSError:
        return []
    return sorted((path, facts.st_ino, facts.st_mtime_ns, facts.st_size) for path, facts in found)
