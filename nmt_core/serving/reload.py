"""New models, tokens and logs while the server runs: at SIGHUP, and when the model folders have changed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nmt_core.errors import NmtError
from nmt_core.serving.metrics import Metrics
from nmt_core.serving.server import NmtServer
from nmt_core.serving.servicer import Load

_log = logging.getLogger(__name__)

State = tuple[tuple[str, int, int], ...]
"""Names, times of change and sizes of files."""


@dataclass(frozen=True)
class Sources:
    """What is read anew.

    ``folders`` names the model folders, ``loader`` makes what loads them, ``others`` are the rest.
    """

    folders: Callable[[], Mapping[str, Sequence[str]]]
    loader: Callable[[], Load]
    others: Sequence[Callable[[], object]] = ()


class Reloader:
    """One reload at a time; what goes wrong is logged, and all stays as it was."""

    def __init__(self, server: NmtServer, sources: Sources, metrics: Metrics | None = None) -> None:
        self._server, self._sources, self._metrics = server, sources, metrics
        self._wanted = asyncio.Event()
        self._seen = self._state()

    def request(self) -> None:
        """Reload soon; called by a signal."""
        self._wanted.set()

    async def run(self, every: float | None) -> None:
        """Reload when it is requested, and look at the folders after so many seconds each time."""
        before = self._seen
        while True:
            try:
                await asyncio.wait_for(self._wanted.wait(), every)
            except TimeoutError:
                now = self._state()
                settled, before = now == before, now
                if not settled or now == self._seen:  # files are still being written, or nothing is new
                    continue
            asked = self._wanted.is_set()
            self._wanted.clear()
            await self.reload(everything=asked)
            before = self._seen

    async def reload(self, *, everything: bool) -> None:
        """Exchange the models; read ``everything`` else anew, too."""
        outcome = "done"
        for step in self._sources.others if everything else ():
            try:
                step()
            except NmtError as error:
                outcome = "failed"
                _log.error("reload: %s; what there was stays", error)
        try:
            self._seen = self._state()
            await self._server.load(self._sources.loader())
            _log.warning("reload: the models were exchanged")
        except NmtError as error:
            outcome = "failed"
            _log.error("reload: %s; the models there were stay", error)
        except Exception:
            outcome = "failed"
            _log.exception("reload failed; the models there were stay")
        if self._metrics is not None:
            self._metrics.reloads.labels(outcome).inc()

    def _state(self) -> State:
        try:
            folders = sorted({folder for parts in self._sources.folders().values() for folder in parts})
        except NmtError:  # gone for a moment; loading says what is wrong
            folders = []
        return tuple(one for folder in folders for one in _files(folder))


def _files(folder: str) -> list[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.stat()) for entry in entries if entry.is_file()]
    except OSError:
        return []
    return sorted((path, facts.st_mtime_ns, facts.st_size) for path, facts in found)
