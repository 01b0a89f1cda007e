"""Small models, and real servers in their own processes."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import inspect
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TextIO
from unittest import mock

import grpc
import pytest
import torch

from nmt_core.commands import serve
from nmt_core.commands.main import main
from nmt_core.serving import command as serving
from nmt_core.serving.client.connection import OPTIONS
from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.telemetry import LogQueue, Metrics, OneLine
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.http2 import RudeClient

ROOT = Path(__file__).parents[3]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine has an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def open_engine() -> Iterator[Callable[..., Engine[Any]]]:
    """Opens engines, which are closed with the test."""
    opened: list[Engine[Any]] = []

    def begin(*arguments: Any, **options: Any) -> Engine[Any]:
        opened.append(Engine(*arguments, **options))
        return opened[-1]

    yield begin
    for engine in opened:
        asyncio.run(engine.close())


@pytest.fixture
def rude() -> Iterator[Callable[..., RudeClient]]:
    """Opens connections, which are closed with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(RudeClient(*arguments, **options))


class AnyServer:
    """A server that writes ``lines``, its access log too."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._ready = threading.Event()

    def _read(self, stream: TextIO) -> None:
        with stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))
                if "ready on" in line:
                    self._ready.set()
        self._ready.set()

    def wait_ready(self) -> Self:
        assert self._ready.wait(180)
        assert any("ready on" in line for line in self.lines), self.lines
        return self

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The lines of its access log."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def _said(self, words: str) -> str:
        return next(line.rpartition(words)[2] for line in self.lines if words in line)

    @property
    def address(self) -> str:
        return self._said("ready on ")

    @property
    def metrics(self) -> str:
        return self._said("metrics on ")

    @functools.cached_property
    def channel(self) -> grpc.Channel:
        """Without encryption; closed with the server."""
        return grpc.insecure_channel(self.address, options=OPTIONS)

    @property
    def stub(self) -> Any:
        return nmt_pb2_grpc.NmtServiceStub(self.channel)

    def stop(self) -> None:
        if "channel" in vars(self):
            self.channel.close()


class ServerProcess(AnyServer):
    """``nmt-core serve`` in its own process."""

    def __init__(self, *arguments: str, prefix: Sequence[str] = (), **environment: str) -> None:
        super().__init__()
        command = [*prefix, sys.executable, "-m", "nmt_core", "serve", "--device", "cpu", "--port", "0", *arguments]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reader.start()

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        code = self.process.wait(40)
        self._reader.join(10)
        return code

    def stop(self) -> None:
        super().stop()
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


class Loop(asyncio.SelectorEventLoop):
    """Keeps what is to be done at signals, which only the main thread may have."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[int, Callable[..., object]] = {}

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        self.handlers[sig] = callback


class ServerThread(AnyServer):
    """The same in a thread of this process, which starts sooner; with a ``grace`` of a second."""

    def __init__(self, *arguments: str) -> None:
        super().__init__()
        parser = argparse.ArgumentParser()
        serve.add_arguments(parser)
        options = ["--device", "cpu", "--port", "0", "--limit", "grace=1"]
        self._args = parser.parse_args([*options, *arguments])
        self._loop, self._task = Loop(), None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._output, self._written = os.pipe()
        with mock.patch.object(serving, "_OUTPUT", self._written):
            self._thread.start()
            self.wait_ready()

    def _run(self) -> None:
        reader = threading.Thread(target=self._read, args=(os.fdopen(self._output),))
        reader.start()
        log, logger, mine = LogQueue(self._written, print), logging.getLogger("nmt_core.serving"), threading.get_ident()
        log.setFormatter(OneLine("nmt-core serve"))
        log.addFilter(lambda record: record.levelno > logging.INFO or record.thread == mine)
        logger.addHandler(log)
        logger.setLevel(logging.INFO)
        threads = torch.get_num_threads()
        try:
            with contextlib.ExitStack() as stack, asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve(stack))
        finally:
            self._close(log, logger, threads, reader)

    def _close(self, log: LogQueue, logger: logging.Logger, threads: int, reader: threading.Thread) -> None:
        torch.set_num_threads(threads)
        logger.removeHandler(log)
        log.close()
        os.close(self._written)
        reader.join()

    async def _serve(self, stack: contextlib.ExitStack) -> None:
        self._task = asyncio.current_task()
        await serving._serve(self._args, None, Metrics(), stack)

    def hang_up(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.handlers[signal.SIGHUP])

    def stop(self) -> None:
        super().stop()
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(60)


@contextlib.contextmanager
def servers() -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers with options; each ends with the block, if not before."""
    started: list[ServerProcess] = []

    def begin(*arguments: str, ready: bool = True, prefix: Sequence[str] = (), **environment: str) -> ServerProcess:
        server = ServerProcess(*arguments, prefix=prefix, **environment)
        started.append(server)
        return server.wait_ready() if ready else server

    try:
        yield begin
    finally:
        for server in started:
            server.stop()


@pytest.fixture(scope="module")
def start_here() -> Iterator[Callable[..., ServerThread]]:
    """Starts a server with these options in this process; it ends with the tests of the module."""
    started: list[ServerThread] = []

    def begin(*arguments: str) -> ServerThread:
        started.append(ServerThread(*arguments))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., ServerProcess]]:
    """Starts a server with these options; it ends with the tests of the module, if not before."""
    with servers() as begin:
        yield begin


def make_model(place: Path, preset: str, source: str, target: str, *more: str) -> None:
    """A small model that was not trained, by ``init``."""
    sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot"]
    settings = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    arguments = ["init", str(place), "--preset", preset, "--source-vocab", source, "--target-vocab", target]
    assert main([*arguments, *settings, *more]) == 0


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models: ``search`` with attention, ``phrases`` without."""
    place = tmp_path_factory.mktemp("models")
    words = place / ".words"
    words.mkdir()
    (words / "s").write_text("</s>\n<unk>\nun\ndeux\n")
    (words / "t").write_text("</s>\n<unk>\none\ntwo\n")
    vocabularies = str(words / "s"), str(words / "t")
    make_model(place / "search", "rnnsearch", *vocabularies, "--set", "model.alignment=4")
    make_model(place / "phrases", "rnnencdec", *vocabularies)
    return place


@pytest.fixture(scope="session")
def folder(models: Path) -> str:
    return str(models / "search")


@pytest.fixture(scope="module")
def server(start_here, folder: str) -> ServerThread:
    """A server of one model with small limits."""
    limits = ["items=6000", "characters=60", "words=12", "beam=10", "nbest=9", "message_mib=4", "request_mib=3"]
    options = [word for limit in [*limits, "streams=50"] for word in ("--limit", limit)]
    return start_here("--model", f"m={folder}", *options, "--beam", "4", "--metrics-port", "0", "--access-log")


@pytest.fixture(scope="module")
def both(start_here, models: Path) -> ServerThread:
    """A server of two models from a folder, with the limits as they are."""
    return start_here("--models", str(models), "--beam", "4")


@pytest.fixture
def own(folder: str, tmp_path: Path) -> Path:
    """A copy of the model, to be changed."""
    return Path(shutil.copytree(folder, tmp_path / "models" / "m"))


@pytest.fixture(scope="module")
def other(folder: str, tmp_path_factory) -> Path:
    """Another model of the same words."""
    place = tmp_path_factory.mktemp("other") / "m"
    vocabularies = f"{folder}/source.vocab", f"{folder}/target.vocab"
    make_model(place, "rnnsearch", *vocabularies, "--set", "model.alignment=4", "--seed", "77")
    return place
