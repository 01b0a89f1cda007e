"""The work of ``nmt-core serve``: open what its options name, serve until a signal, and reload at another."""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import signal
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.credentials import Certificates, certificate_end, check_exposure, read_tokens
from nmt_core.serving.limits import Limits, read_limits
from nmt_core.serving.logs import STANDARD_ERROR, LogQueue, OneLine
from nmt_core.serving.models.devices import Load
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.options import (
    CandidateChoice,
    LexiconChoice,
    model_folders,
    named_candidates,
    named_folders,
    named_lexicons,
    read_devices,
)
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.plugin_models import PluginModels, open_hybrids
from nmt_core.serving.reload import Reloader, Sources
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.serving.telemetry import Metrics, Telemetry, Tracing, serve_metrics

_log = logging.getLogger(__name__)


def serve(args: argparse.Namespace) -> int:
    """Load the models and serve until told to stop."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    with ExitStack() as stack:
        log = stack.enter_context(_server_log(args.program))
        plugins = open_hybrids(args.hybrid)
        stack.callback(plugins.close)
        asyncio.run(_serve(args, plugins, log, stack))
    return 0


async def _serve(args: argparse.Namespace, plugins: PluginModels, log: LogQueue, stack: ExitStack) -> None:
    stop, limits = _stop_signals(), read_limits(args.limits, args.limit)
    address, load, devices = read_address(args), model_loader(args, plugins, limits), read_devices(args)
    tokens = read_tokens(args.token_file) if args.token_file else None
    telemetry = _telemetry(args, log, stack)
    if telemetry.metrics is not None:
        plugins.watch(telemetry.metrics.registry)
    servicer = NmtServicer(devices=devices, limits=limits, metrics=telemetry.metrics)
    server = NmtServer(servicer, address, telemetry, tokens)  # a port in use shows before anything is loaded
    await server.start()
    try:
        reloader = _reloader(args, plugins, server, address, telemetry.metrics)
        if not await _unless_stopped(server.load(load), stop):
            _log.info("ended while the models were being loaded")
            return
        _log.info("ready on %s:%d", args.host, server.port)
        reloading = asyncio.create_task(reloader.run(args.watch_models))
        await stop.wait()
        reloading.cancel()
        _log.info("finishing what was accepted; a second signal ends at once")
    finally:
        await server.stop(limits.grace, delay=limits.drain)


@contextmanager
def _server_log(program: str) -> Iterator[LogQueue]:
    """The server's own messages, on standard error: of hybridmt all from INFO on, of others warnings."""
    log, ours = LogQueue(STANDARD_ERROR), logging.getLogger(__package__)
    log.setFormatter(OneLine(program))
    logging.getLogger().addHandler(log)
    ours.setLevel(logging.INFO)
    try:
        yield log
    finally:
        ours.setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(log)
        log.close()


def _telemetry(args: argparse.Namespace, log: LogQueue, stack: ExitStack) -> Telemetry:
    """Metrics, spans and the access log that the arguments ask for. Raises InputError or NmtError."""
    telemetry = Telemetry()
    if args.metrics_port is not None:
        telemetry.metrics, port = serve_metrics(args.metrics_host, args.metrics_port)
        log.dropped = telemetry.metrics.log_dropped.labels("server").inc
        _log.info("metrics on http://%s:%d/metrics", args.metrics_host, port)
    if args.access_log:
        telemetry.log = LogQueue(args.access_log)
        stack.callback(telemetry.log.close)
        if telemetry.metrics is not None:
            telemetry.log.dropped = telemetry.metrics.log_dropped.labels("access").inc
    if args.tracing:
        telemetry.tracing = Tracing()
        stack.callback(telemetry.tracing.close)
    return telemetry


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


def _reloader(
    args: argparse.Namespace, plugins: PluginModels, server: NmtServer, address: Address, metrics: Metrics | None
) -> Reloader:
    """What reads everything again, at SIGHUP too."""

    def exchange_tokens() -> None:
        if args.token_file:
            server.calls.tokens = read_tokens(args.token_file, regular=True)

    def check_certificate() -> None:
        if address.certificates is not None:
            address.certificates.check_and_warn()

    check_certificate()
    if address.certificates is not None and metrics is not None:
        metrics.watch_certificate(certificate_end(address.certificates))
    sources = Sources(
        folders=lambda: served_folders(args, plugins),
        loader=lambda: model_loader(args, plugins, server.servicer.limits),
        others=(exchange_tokens, check_certificate),
    )
    reloader = Reloader(server, sources, metrics)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
    return reloader


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
    if certificates is not None:
        certificates.check()
    return Address(args.host, args.port, certificates, reflection=not args.no_reflection)


def served_folders(args: argparse.Namespace, plugins: PluginModels) -> dict[str, list[str]]:
    """The folders of all models but the ``plugins`` ones. Raises ConfigError."""
    folders = named_folders(args.model)
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders and not plugins.names:
        raise ConfigError("no model: give --model NAME=DIR, --models DIR or --hybrid NAME=RECIPE")
    if twice := sorted(folders.keys() & set(plugins.names)):
        raise ConfigError(f"two models are called {twice[0]}")
    return folders


def model_loader(args: argparse.Namespace, plugins: PluginModels, limits: Limits) -> Load:
    """What loads the models for a device. Raises ConfigError."""
    folders = served_folders(args, plugins)
    lexicons, candidates = named_lexicons(args.lexicon, folders), named_candidates(args.candidates, folders)
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")
    if args.watch_models is not None and not 0 < args.watch_models <= 1e6:
        raise ConfigError(f"--watch-models {args.watch_models:g}: expected more than 0 seconds")

    def load(device: str) -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": limits.batch * args.beam}

        @functools.cache
        def of_folders(
            parts: tuple[str, ...], lexicon: LexiconChoice | None = None, candidates: CandidateChoice | None = None
        ) -> ServedModel:
            return open_served_model(parts, defaults, lexicon=lexicon, candidates=candidates, **options)

        models = {
            name: of_folders(tuple(parts), lexicons.get(name), candidates.get(name)) for name, parts in folders.items()
        }
        return models | dict(plugins.load(device, lambda parts: of_folders(tuple(parts), None, None)))

    return load
