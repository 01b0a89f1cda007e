"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any

from nmt_core.messages import say

if TYPE_CHECKING:
    import asyncio

    from nmt_core.serving.limits import Limits
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.models import ServedModel
    from nmt_core.serving.server import Address, NmtServer
    from nmt_core.serving.servicer import Load

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
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
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


def _add_limits(group: argparse._ArgumentGroup) -> None:
    whole: dict[str, Any] = {"type": int, "metavar": "N"}
    group.add_argument("--max-items", **whole, help="texts, pairs or hypotheses of a request (default: 20000)")
    group.add_argument("--max-characters", **whole, help="of a text (default: 20000)")
    group.add_argument("--max-words", **whole, help="of a text (default: 2000)")
    group.add_argument("--max-beam", **whole, help="(default: 200)")
    group.add_argument("--max-nbest", **whole, help="translations of a sentence (default: 200)")
    group.add_argument("--max-message-mib", **whole, help="size of a message (default: 32)")
    group.add_argument("--max-calls", **whole, help="calls open at once (default: 10000)")
    group.add_argument("--max-streams", **whole, help="streams open at once (default: 256)")
    group.add_argument("--queue-tokens", **whole, default=2_000_000, help="what may wait (default: 2000000)")
    group.add_argument(
        "--max-delay", type=float, default=0.002, metavar="S", help="seconds a batch waits for more (default: 0.002)"
    )
    group.add_argument(
        "--drain-delay", type=float, default=0.0, metavar="S", help="seconds from NOT_SERVING to the end (default: 0)"
    )
    group.add_argument(
        "--grace", type=float, default=30.0, metavar="S", help="seconds to answer what was accepted (default: 30)"
    )


def run(args: argparse.Namespace) -> int:
    """Load the models and serve until told to stop."""
    import asyncio
    import importlib
    import os

    from nmt_core.errors import NmtError

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told in our own words
    try:
        importlib.import_module("nmt_core.serving.server")
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error
    with ExitStack() as stack:
        asyncio.run(_serve(args, stack))
    return 0


async def _serve(args: argparse.Namespace, stack: ExitStack) -> None:
    import logging

    logging.basicConfig(level=logging.WARNING, format="nmt-core serve: %(message)s", stream=sys.stderr)
    address, load, devices = _address(args), _loader(args), _devices(args)
    server = _server(args, address, devices, stack)  # a port in use shows before anything is loaded
    stop = _stop_signals()
    await server.start()
    try:
        await server.load(load)
        _say(f"ready on {args.host}:{server.port}")
        await stop.wait()
        _say("finishing what was accepted; a second signal ends at once")
    finally:
        await server.stop(args.grace, delay=args.drain_delay)


def _server(args: argparse.Namespace, address: Address, devices: Sequence[str], stack: ExitStack) -> NmtServer:
    from nmt_core.serving.calls import Calls
    from nmt_core.serving.security import read_tokens
    from nmt_core.serving.server import NmtServer
    from nmt_core.serving.servicer import NmtServicer

    limits = _limits(args)
    metrics = _metrics(args, stack)
    tokens = read_tokens(args.token_file) if args.token_file else None
    log = stack.enter_context(_access_log(args.access_log)) if args.access_log else None
    tracing = None
    if args.tracing:
        from nmt_core.serving.tracing import Tracing

        tracing = Tracing()
        stack.callback(tracing.close)
    servicer = NmtServicer(
        devices=devices, limits=limits, metrics=metrics, capacity=args.queue_tokens, delay=args.max_delay
    )
    return NmtServer(servicer, address, Calls(limits, metrics=metrics, log=log, tokens=tokens, tracing=tracing))


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
    return Address(args.host, args.port, certificates, reflection=not args.no_reflection)


def _limits(args: argparse.Namespace) -> Limits:
    """The limits that were given. Raises ConfigError for those below 1."""
    from nmt_core.errors import ConfigError
    from nmt_core.serving.limits import Limits

    given: dict[str, int] = {}
    for name in ("items", "characters", "words", "beam", "nbest", "message_mib", "calls", "streams"):
        value = getattr(args, f"max_{name}")
        if value is None:
            continue
        if value < 1:
            raise ConfigError(f"--max-{name.replace('_', '-')} {value}: expected at least 1")
        given.update({"message_bytes": value << 20} if name == "message_mib" else {name: value})
    limits = Limits(**given)
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    if min(args.queue_tokens, args.max_delay, args.grace, args.drain_delay) < 0:
        raise ConfigError("--queue-tokens, --max-delay, --grace and --drain-delay cannot be negative")
    return limits


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


def _loader(args: argparse.Namespace) -> Load:
    """What loads the models for a device. Raises ConfigError."""
    from nmt_core.errors import ConfigError
    from nmt_core.inference.search_config import DecodingConfig
    from nmt_core.serving.models import (
        model_folders,
        named_candidates,
        named_folders,
        named_lexicons,
        open_served_model,
    )

    folders = named_folders(args.model)
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders:
        raise ConfigError("no model: give --model NAME=DIR, or --models DIR")
    lexicons, candidates = named_lexicons(args.lexicon, folders), named_candidates(args.candidates, folders)
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    if args.batch_tokens < 1:
        raise ConfigError(f"--batch-tokens {args.batch_tokens}: expected at least 1")
    decode_tokens = args.batch_tokens * args.beam

    def load(device: str) -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": decode_tokens}
        return {
            name: open_served_model(
                parts, defaults, lexicon=lexicons.get(name), candidates=candidates.get(name), **options
            )
            for name, parts in folders.items()
        }

    return load


def _metrics(args: argparse.Namespace, stack: ExitStack) -> Metrics | None:
    if args.metrics_port is None:
        return None
    from nmt_core.serving.metrics import Metrics

    metrics = Metrics()
    stack.callback(metrics.serve(args.metrics_host, args.metrics_port))
    _say(f"metrics on http://{args.metrics_host}:{metrics.port}/metrics")
    return metrics


@contextmanager
def _access_log(path: str) -> Iterator[IO[str]]:
    from nmt_core.errors import InputError

    if path == "-":
        yield sys.stderr
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open(path, "a", encoding="utf-8"))
        except OSError as error:
            raise InputError(path, f"cannot be written ({error.strerror})") from error
        yield stream


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


def _say(remark: str) -> None:
    say(f"nmt-core {NAME}: {remark}")
