"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from nmt_core.messages import show

if TYPE_CHECKING:
    import asyncio

    from nmt_core.serving.devices import Load
    from nmt_core.serving.further import FurtherModels
    from nmt_core.serving.limits import Limits
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.model_options import CandidateChoice, LexiconChoice
    from nmt_core.serving.models import ServedModel
    from nmt_core.serving.reload import Reloader
    from nmt_core.serving.server import Address, NmtServer
    from nmt_core.serving.watchers import Watchers

NAME = "serve"
HELP = "serve models over gRPC"

_EPILOG = """\
examples:
  nmt-core serve --model en-fr=runs/en-fr --port 50551
  nmt-core serve --model en-fr=runs/a,runs/b --model fr-en=runs/c --device cuda:0,cuda:1
  nmt-core serve --models /srv/models --host 0.0.0.0 --tls-cert server.pem --tls-key server.key \\
      --token-file tokens --metrics-port 9464 --access-log -

NAME=DIR,DIR serves an ensemble. The server listens on this machine only unless --host says otherwise, and then
wants certificates or --insecure. SIGTERM and Ctrl-C answer what was accepted, then end; a second one ends at once.
SIGHUP reads models, tokens and certificates anew, and opens the access log anew.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.set_defaults(program=f"nmt-core {NAME}")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="a model and its name")
    parser.add_argument("--models", metavar="DIR", help="all model folders in this folder, by their names")
    parser.add_argument(
        "--lexicon",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="of that model, for <unk> that is replaced and for --candidates",
    )
    parser.add_argument(
        "--candidates",
        action="append",
        default=[],
        metavar="NAME=K[,L]",
        help="search that model with its K most frequent words, and L of the lexicon a source word (10)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=50551, metavar="N", help="0 takes a free one (default: 50551)")
    parser.add_argument("--beam", type=int, default=12, metavar="K", help="where a request says nothing (default: 12)")
    devices = "auto, cpu, cuda or cuda:N; several, with commas, have a copy of every model each (default: auto)"
    parser.add_argument("--device", default="auto", help=devices)
    parser.add_argument("--dtype", default="float32", help="float32, float64, bfloat16, or tf32 on a GPU (float32)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of PyTorch on the CPU (default: its choice)")
    parser.add_argument(
        "--batch-tokens",
        type=int,
        default=1000,
        metavar="N",
        help="source words translated at once, at the beam above; on a GPU more is faster (default: 1000)",
    )
    parser.add_argument(
        "--watch-models", type=float, metavar="S", help="look every S seconds whether model folders have changed"
    )
    _add_security(parser.add_argument_group("security"))
    _add_observation(parser.add_argument_group("observation"))
    _add_limits(parser.add_argument_group("limits and times"))


def _add_security(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tls-cert", metavar="PEM", help="the server's certificate; renewed when the file changes")
    group.add_argument("--tls-key", metavar="PEM", help="its private key")
    group.add_argument("--tls-client-ca", metavar="PEM", help="clients must show a certificate signed by this CA")
    group.add_argument("--token-file", metavar="FILE", help="clients must show a token; lines of NAME TOKEN")
    group.add_argument("--insecure", action="store_true", help="listen on a public address without encryption")
    group.add_argument("--no-reflection", action="store_true", help="do not describe the service to clients")


def _add_observation(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--metrics-port", type=int, metavar="N", help="Prometheus metrics over HTTP (default: none)")
    group.add_argument("--metrics-host", default="127.0.0.1", metavar="HOST", help="for them (default: 127.0.0.1)")
    group.add_argument("--access-log", metavar="FILE", help="one JSON object a call, without texts; - is stderr")
    group.add_argument(
        "--tracing", action="store_true", help="OpenTelemetry spans (OTEL_TRACES_EXPORTER says where to)"
    )


_LIMITS = {
    "items": "texts, pairs or hypotheses of a request",
    "characters": "of a text",
    "words": "of a text",
    "beam": "",
    "nbest": "translations of a sentence",
    "steps": "hypotheses of a request times the words they may have",
    "message_mib": "size of a message",
    "memory_mib": "what requests under way may hold",
    "calls": "calls open at once",
    "client_calls": "calls of one client open at once",
    "streams": "streams open at once",
    "client_streams": "streams of one client open at once",
    "watches": "health watches open at once",
    "connections": "connections open at once",
}
_SECONDS = {
    "body": "for a request to arrive",
    "unread": "for the answer of a stream to be taken",
    "idle": "until unused streams and connections are closed",
    "age": "until connections are asked to be opened anew",
    "stuck": "for one batch or step, before health says NOT_SERVING",
}


def _add_limits(group: argparse._ArgumentGroup) -> None:
    whole: dict[str, Any] = {"type": int, "metavar": "N"}
    for name, meaning in _LIMITS.items():
        group.add_argument(f"--max-{name.replace('_', '-')}", **whole, help=f"{meaning} (default: {_default(name)})")
    for name, meaning in _SECONDS.items():
        text = f"seconds {meaning} (default: {_default(name):g})"
        group.add_argument(f"--{name}-timeout", type=float, metavar="S", help=text)
    group.add_argument("--queue-tokens", **whole, default=2_000_000, help="what may wait (default: 2000000)")
    group.add_argument("--client-tokens", **whole, help="what may wait of one client (default: a quarter of that)")
    group.add_argument(
        "--max-delay", type=float, default=0.002, metavar="S", help="seconds a batch waits for more (default: 0.002)"
    )
    group.add_argument(
        "--drain-delay", type=float, default=0.0, metavar="S", help="seconds from NOT_SERVING to the end (default: 0)"
    )
    group.add_argument(
        "--grace", type=float, default=30.0, metavar="S", help="seconds to answer what was accepted (default: 30)"
    )


def run(args: argparse.Namespace, further: FurtherModels | None = None) -> int:
    """Load the models, and ``further`` ones of another package, and serve until told to stop."""
    import asyncio
    import importlib
    import os
    import signal

    from nmt_core.errors import NmtError

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read anew
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told in our own words
    try:
        importlib.import_module("nmt_core.serving.server")
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error
    from nmt_core.serving.further import NoFurtherModels

    with ExitStack() as stack:
        log = stack.enter_context(_server_log(args.program))
        others = further or NoFurtherModels()
        stack.callback(others.close)
        asyncio.run(_serve(args, others, log, stack))
    return 0


async def _serve(args: argparse.Namespace, further: FurtherModels, log: LogWriter, stack: ExitStack) -> None:
    import asyncio

    address, load, devices = _address(args), _loader(args, further), _devices(args)
    metrics = await _metrics(args, log, stack)
    if metrics is not None:
        further.watch(metrics.registry)
    watchers = _watchers(args, metrics, stack)
    server = _server(args, address, devices, watchers)  # a port in use shows before anything is loaded
    stop = _stop_signals()
    await server.start()
    try:
        reloader = _reloader(args, further, server, address, watchers)
        if not await _unless_stopped(server.load(load), stop):
            _say(args, log, "ended while the models were being loaded")
            return
        _say(args, log, f"ready on {args.host}:{server.port}")
        reloading = asyncio.create_task(reloader.run(args.watch_models))
        await stop.wait()
        reloading.cancel()
        _say(args, log, "finishing what was accepted; a second signal ends at once")
    finally:
        await server.stop(args.grace, delay=args.drain_delay)


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether work was done before the server was told to stop. Raises what it raises."""
    import asyncio

    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        return False
    working.result()
    return True


@contextmanager
def _server_log(program: str) -> Iterator[LogWriter]:
    """Where the server's own remarks go: to standard error, without ever waiting for it."""
    import logging

    from nmt_core.serving.log_writer import STANDARD_ERROR, LogHandler, LogWriter

    log = LogWriter(STANDARD_ERROR)
    handler = LogHandler(log)
    logging.basicConfig(level=logging.WARNING, format=f"{program}: %(message)s", handlers=[handler])
    try:
        yield log
    finally:
        logging.getLogger().removeHandler(handler)
        log.close()


def _server(args: argparse.Namespace, address: Address, devices: Sequence[str], watchers: Watchers) -> NmtServer:
    from nmt_core.serving.server import NmtServer
    from nmt_core.serving.servicer import NmtServicer

    client_tokens = args.queue_tokens // 4 if args.client_tokens is None else args.client_tokens
    servicer = NmtServicer(
        devices=devices,
        limits=_limits(args),
        metrics=watchers.metrics,
        capacity=args.queue_tokens,
        client_capacity=client_tokens,
        delay=args.max_delay,
    )
    return NmtServer(servicer, address, watchers)


def _watchers(args: argparse.Namespace, metrics: Metrics | None, stack: ExitStack) -> Watchers:
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.security import read_tokens
    from nmt_core.serving.watchers import Watchers

    watchers = Watchers(metrics, tokens=read_tokens(args.token_file) if args.token_file else None)
    if args.access_log:
        dropped = None if metrics is None else metrics.log_dropped.labels("access").inc
        watchers.log = LogWriter(args.access_log, dropped=dropped or (lambda: None))
        stack.callback(watchers.log.close)
    if args.tracing:
        from nmt_core.serving.tracing import Tracing

        watchers.tracing = Tracing()
        stack.callback(watchers.tracing.close)
    return watchers


def _reloader(
    args: argparse.Namespace, further: FurtherModels, server: NmtServer, address: Address, watchers: Watchers
) -> Reloader:
    """What reads all anew, at SIGHUP too."""
    import asyncio
    import signal

    from nmt_core.serving.reload import Reloader, Sources
    from nmt_core.serving.security import read_tokens

    def exchange_tokens() -> None:
        if args.token_file:
            watchers.tokens = read_tokens(args.token_file, regular=True)

    def reopen_log() -> None:
        if watchers.log is not None:
            watchers.log.reopen()

    def check_certificate() -> None:
        _check_certificate(address, watchers.metrics)

    check_certificate()
    steps = (exchange_tokens, reopen_log, check_certificate)
    reloader = Reloader(
        server, Sources(lambda: _folders(args, further), lambda: _loader(args, further), steps), watchers.metrics
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
    return reloader


def _check_certificate(address: Address, metrics: Metrics | None) -> None:
    """Warn of a certificate that clients will refuse. Raises InputError where it does not fit its key."""
    import logging
    from datetime import UTC, datetime

    if address.certificates is None:
        return
    validity = address.certificates.check()
    if metrics is not None:
        metrics.certificate.set(validity.end.timestamp())
    if problem := validity.problem(datetime.now(UTC)):
        logging.getLogger(__name__).warning(
            "the certificate %s %s: clients will refuse it; renew the file, the server follows it",
            address.certificates.certificate,
            problem,
        )


def _address(args: argparse.Namespace) -> Address:
    """Where to listen. Raises ConfigError."""
    from nmt_core.errors import ConfigError
    from nmt_core.serving.security import Certificates, check_exposure
    from nmt_core.serving.server import Address

    for option in ("port", "metrics_port"):
        port = getattr(args, option)
        if port is not None and not 0 <= port <= 65535:
            raise ConfigError(f"--{option.replace('_', '-')} {port}: expected 0 to 65535")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key belong together")
    if args.tls_client_ca and not args.tls_cert:
        raise ConfigError("--tls-client-ca needs --tls-cert and --tls-key")
    check_exposure(args.host, encrypted=args.tls_cert is not None, insecure=args.insecure)
    certificates = Certificates(args.tls_cert, args.tls_key, args.tls_client_ca) if args.tls_cert else None
    if certificates is not None:
        certificates.check()
    return Address(args.host, args.port, certificates, reflection=not args.no_reflection)


def _limits(args: argparse.Namespace) -> Limits:
    """The limits that were given. Raises ConfigError for those below 1."""
    from nmt_core.errors import ConfigError
    from nmt_core.serving.limits import Limits

    given: dict[str, Any] = {}
    for name in _LIMITS:
        value = getattr(args, f"max_{name}")
        if value is None:
            continue
        if value < 1:
            raise ConfigError(f"--max-{name.replace('_', '-')} {value}: expected at least 1")
        given.update({f"{name[:-4]}_bytes": value << 20} if name.endswith("_mib") else {name: value})
    for name in _SECONDS:
        value = getattr(args, f"{name}_timeout")
        if value is not None and not 0 < value <= 1e6:
            raise ConfigError(f"--{name}-timeout {value:g}: expected more than 0, at most 1000000")
        given.update({} if value is None else {f"{name}_seconds": value})
    if (mib := args.max_message_mib) is not None and mib > 1024:
        raise ConfigError(f"--max-message-mib {mib}: expected at most 1024")
    limits = Limits(**given)
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    if min(args.queue_tokens, args.client_tokens or 0, args.max_delay, args.grace, args.drain_delay) < 0:
        problem = "--queue-tokens, --client-tokens, --max-delay, --grace and --drain-delay cannot be negative"
        raise ConfigError(problem)
    if args.watch_models is not None and not 0 < args.watch_models <= 1e6:
        raise ConfigError(f"--watch-models {args.watch_models:g}: expected more than 0 seconds")
    return limits


def _default(name: str) -> Any:
    """Of the option of a limit."""
    from nmt_core.serving.limits import Limits

    limits = Limits()
    if name.endswith("_mib"):
        return getattr(limits, f"{name[:-4]}_bytes") >> 20
    return getattr(limits, f"{name}_seconds" if name in _SECONDS else name)


def _devices(args: argparse.Namespace) -> list[str]:
    """The devices to serve on. Raises ConfigError."""
    from nmt_core.device import choose_device
    from nmt_core.errors import ConfigError

    devices = [str(choose_device(name)) for name in args.device.split(",")]
    if len(set(devices)) < len(devices):
        raise ConfigError(f"--device {args.device}: a device is named twice")
    if args.threads is not None:
        import torch

        if args.threads < 1:
            raise ConfigError(f"--threads {args.threads}: expected at least 1")
        torch.set_num_threads(args.threads)
    return devices


def _folders(args: argparse.Namespace, further: FurtherModels) -> dict[str, list[str]]:
    """The folders of all models but the ``further`` ones. Raises ConfigError."""
    from nmt_core.errors import ConfigError
    from nmt_core.serving.model_options import model_folders, named_folders

    folders = named_folders(args.model)
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders and not further.names:
        raise ConfigError("no model: give --model NAME=DIR, or --models DIR")
    if twice := sorted(folders.keys() & set(further.names)):
        raise ConfigError(f"two models are called {twice[0]}")
    return folders


def _loader(args: argparse.Namespace, further: FurtherModels) -> Load:
    """What loads the models for a device. Raises ConfigError."""
    import functools

    from nmt_core.errors import ConfigError
    from nmt_core.inference.search_config import DecodingConfig
    from nmt_core.serving.model_options import named_candidates, named_lexicons
    from nmt_core.serving.models import open_served_model

    folders = _folders(args, further)
    lexicons, candidates = named_lexicons(args.lexicon, folders), named_candidates(args.candidates, folders)
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    if args.batch_tokens < 1:
        raise ConfigError(f"--batch-tokens {args.batch_tokens}: expected at least 1")
    decode_tokens = args.batch_tokens * args.beam

    def load(device: str) -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": decode_tokens}

        @functools.cache
        def of_folders(
            parts: tuple[str, ...], lexicon: LexiconChoice | None = None, candidates: CandidateChoice | None = None
        ) -> ServedModel:
            return open_served_model(parts, defaults, lexicon=lexicon, candidates=candidates, **options)

        models = {
            name: of_folders(tuple(parts), lexicons.get(name), candidates.get(name)) for name, parts in folders.items()
        }
        return models | dict(further.load(device, lambda parts: of_folders(tuple(parts), None, None)))

    return load


async def _metrics(args: argparse.Namespace, log: LogWriter, stack: ExitStack) -> Metrics | None:
    if args.metrics_port is None:
        return None
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.metrics_page import MetricsPage

    metrics = Metrics()
    page = MetricsPage(metrics.registry)
    await page.start(args.metrics_host, args.metrics_port)
    stack.callback(page.close)
    log.count_dropped(metrics.log_dropped.labels("server").inc)
    _say(args, log, f"metrics on http://{args.metrics_host}:{page.port}/metrics")
    return metrics


def _stop_signals() -> asyncio.Event:
    """An event set by the first SIGTERM or SIGINT; a second one ends the process at once."""
    import asyncio
    import signal

    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)
    return stop


def _say(args: argparse.Namespace, log: LogWriter, remark: str) -> None:
    log.write(show(f"{args.program}: {remark}"))
