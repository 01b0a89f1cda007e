"""The work of ``nmt-core serve``: open what its options name, serve until a signal, and reload at another."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import torch

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.device import choose_device
from nmt_core.serving.credentials import Certificates, check_exposure, read_tokens
from nmt_core.serving.limits import read_limits
from nmt_core.serving.loading import PluginModels, model_loader, open_hybrids
from nmt_core.serving.models.device import Load
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.serving.telemetry import LogQueue, Metrics, OneLine, serve_metrics

_OUTPUT, _ERRORS = 1, 2  # standard streams
_log = logging.getLogger(__name__)


def serve(args: argparse.Namespace) -> int:
    """Load the models and serve until told to stop."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    with ExitStack() as stack:
        metrics = Metrics()
        stack.enter_context(_server_log(args.program, metrics))
        plugins = open_hybrids(args.hybrid)
        if plugins is not None:
            stack.callback(plugins.close)
            plugins.watch(metrics.registry)
        with contextlib.suppress(asyncio.CancelledError):  # by a signal
            asyncio.run(_serve(args, plugins, metrics, stack))
    if any(thread.name.startswith("model ") for thread in threading.enumerate()):
        os._exit(0)  # Python's end would abort PyTorch in a thread that still loads or computes
    return 0


async def _serve(args: argparse.Namespace, plugins: PluginModels | None, metrics: Metrics, stack: ExitStack) -> None:
    """Start the server, load the models, and reload them on request, until a signal cancels this task."""
    _cancel_at_signal()
    limits, address, device = read_limits(args.limits, args.limit), read_address(args), str(choose_device(args.device))
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    loader = functools.partial(model_loader, args, device, plugins, limits)
    load = loader()
    tokens = read_tokens(args.token_file) if args.token_file else None
    if args.metrics_port is not None:
        port = serve_metrics(metrics, args.metrics_host, args.metrics_port)
        _log.info("metrics on http://%s:%d/metrics", args.metrics_host, port)
    log = None
    if args.access_log:
        log = LogQueue(_OUTPUT, metrics.log_dropped.labels("access").inc)
        stack.callback(log.close)
    servicer = NmtServicer(device=device, limits=limits, metrics=metrics)
    server = NmtServer(servicer, address, tokens=tokens, log=log)  # a port in use shows before anything is loaded
    await server.start()
    try:
        reloader = Reloader(server, args.token_file, loader)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
        await server.load(load)
        _log.info("ready on %s:%d", args.host, server.port)
        await reloader.run()
    except asyncio.CancelledError:
        finishing = "finishing what was accepted; a second signal ends at once"
        _log.info(finishing if server.servicer.device.models else "ended while the models were being loaded")
    finally:
        await server.stop(limits.grace, delay=limits.drain)


@contextlib.contextmanager
def _server_log(program: str, metrics: Metrics) -> Iterator[None]:
    """The server's own messages, on standard error: of hybridmt all from INFO on, of others warnings."""
    log, ours = LogQueue(_ERRORS, metrics.log_dropped.labels("server").inc), logging.getLogger(__package__)
    log.setFormatter(OneLine(program))
    logging.getLogger().addHandler(log)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(log)
        log.close()


def _cancel_at_signal() -> None:
    """Cancel this task at the first SIGTERM or SIGINT; a second one ends the process at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def first() -> None:
        task.cancel()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)


class Reloader:
    """Exchanges tokens and models while the server answers; what fails is logged, and the old ones stay."""

    def __init__(self, server: NmtServer, token_file: str | None, loader: Callable[[], Load]) -> None:
        self._server, self._token_file, self._loader = server, token_file, loader
        self._wanted = asyncio.Event()

    def request(self) -> None:
        """Exchange the tokens now, and the models soon; called by a signal.

        Tokens that are revoked do not wait until large models are loaded.
        """
        with self._reported("the tokens there were stay"):
            if self._token_file is not None:
                self._server.admission.tokens = read_tokens(self._token_file, regular=True)
        self._wanted.set()

    async def run(self) -> None:
        """Exchange the models whenever it is requested, one time after the other."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            with self._reported("the models there were stay"):
                await self._server.load(self._loader())
                _log.warning("reload: the models were exchanged")
                self._count("done")

    @contextlib.contextmanager
    def _reported(self, stays: str) -> Iterator[None]:
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
        self._server.servicer.metrics.reloads.labels(outcome).inc()


def read_address(args: argparse.Namespace) -> Address:
    """Where to listen. Raises ConfigError."""
    for option in ("port", "metrics_port"):
        port = getattr(args, option)
        if port is not None and not 0 <= port <= 65535:
            raise ConfigError(f"--{option.replace('_', '-')} {port}: expected 0 to 65535")
    if "/" in args.host or args.host.partition(":")[0] in ("unix", "unix-abstract"):
        raise ConfigError(f"--host {args.host}: expected a name or an IP address; sockets of files are not listened on")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key belong together")
    if args.tls_client_ca and not args.tls_cert:
        raise ConfigError("--tls-client-ca needs --tls-cert and --tls-key")
    check_exposure(args.host, encrypted=args.tls_cert is not None, insecure=args.insecure)
    certificates = Certificates(args.tls_cert, args.tls_key, args.tls_client_ca) if args.tls_cert else None
    return Address(args.host, args.port, certificates)
