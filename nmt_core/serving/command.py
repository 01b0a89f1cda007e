"""The work of ``nmt-core serve``: open what its options name, serve until a signal, and reload at another."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.serving.credentials import Certificates, check_exposure, read_tokens
from nmt_core.serving.limits import read_limits
from nmt_core.serving.loading import PluginModels, Reloader, model_loader, open_hybrids
from nmt_core.serving.models.options import read_devices
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.serving.telemetry import STANDARD_ERROR, LogQueue, Metrics, OneLine, serve_metrics

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
        asyncio.run(_serve(args, plugins, metrics, stack))
    return 0


async def _serve(args: argparse.Namespace, plugins: PluginModels | None, metrics: Metrics, stack: ExitStack) -> None:
    stop, limits = _stop_signals(), read_limits(args.limits, args.limit)
    address, load, devices = read_address(args), model_loader(args, plugins, limits), read_devices(args)
    tokens = read_tokens(args.token_file) if args.token_file else None
    if args.metrics_port is not None:
        port = serve_metrics(metrics, args.metrics_host, args.metrics_port)
        _log.info("metrics on http://%s:%d/metrics", args.metrics_host, port)
    log = None
    if args.access_log:
        log = LogQueue(args.access_log, metrics.log_dropped.labels("access").inc)
        stack.callback(log.close)
    servicer = NmtServicer(devices=devices, limits=limits, metrics=metrics)
    server = NmtServer(servicer, address, tokens=tokens, log=log)
    await server.start()  # a port in use shows before anything is loaded
    try:
        reloader = Reloader(server, args.token_file, address.certificates, lambda: model_loader(args, plugins, limits))
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
        if not await _unless_stopped(server.load(load), stop):
            _log.info("ended while the models were being loaded")
            return
        _log.info("ready on %s:%d", args.host, server.port)
        await _unless_stopped(reloader.run(), stop)
        _log.info("finishing what was accepted; a second signal ends at once")
    finally:
        await server.stop(limits.grace, delay=limits.drain)


@contextmanager
def _server_log(program: str, metrics: Metrics) -> Iterator[None]:
    """The server's own messages, on standard error: of hybridmt all from INFO on, of others warnings."""
    log, ours = LogQueue(STANDARD_ERROR, metrics.log_dropped.labels("server").inc), logging.getLogger(__package__)
    log.setFormatter(OneLine(program))
    logging.getLogger().addHandler(log)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(log)
        log.close()


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether work was done before the server was told to stop. Raises what it raises."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        return False
    working.result()
    return True


def _stop_signals() -> asyncio.Event:
    """An event set by the first SIGTERM or SIGINT; a second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)
    return stop


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
    return Address(args.host, args.port, certificates, reflection=not args.no_reflection)
