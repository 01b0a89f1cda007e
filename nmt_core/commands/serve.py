"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from nmt_core.commands.file_types import ModelsFolder, NamedLexicon, NamedModel
from nmt_core.commands.options import add_precision
from nmt_core.commands.served_models import model_loader, read_devices, served_folders
from nmt_core.commands.server_limits import add_limit_options, read_limits
from nmt_core.commands.server_observation import (
    add_observation_options,
    open_metrics,
    open_server_log,
    open_watchers,
    tell,
)
from nmt_core.commands.server_security import (
    add_security_options,
    check_certificate,
    read_address,
    watch_certificate,
)

if TYPE_CHECKING:
    import asyncio

    from nmt_core.serving.further import FurtherModels
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.reload import Reloader
    from nmt_core.serving.server import Address, NmtServer
    from nmt_core.serving.watchers import Watchers

NAME = "serve"

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
    parser.add_argument(
        "--model", type=NamedModel, action="append", default=[], metavar="NAME=DIR", help="a model and its name"
    )
    parser.add_argument(
        "--models", type=ModelsFolder, metavar="DIR", help="all model folders in this folder, by their names"
    )
    parser.add_argument(
        "--lexicon",
        type=NamedLexicon,
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
    add_precision(parser)
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
    add_security_options(parser.add_argument_group("security"))
    add_observation_options(parser.add_argument_group("observation"))
    add_limit_options(parser.add_argument_group("limits and times"))


def run(args: argparse.Namespace, further: FurtherModels | None = None) -> int:
    """Load the models, and ``further`` ones of another package, and serve until told to stop."""
    import asyncio
    import importlib
    import os
    import signal

    from nmt_core.base.errors import NmtError

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read anew
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told in our own words
    try:
        importlib.import_module("nmt_core.serving.server")
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error
    from nmt_core.serving.further import NoFurtherModels

    with ExitStack() as stack:
        log = stack.enter_context(open_server_log(args.program))
        others = further or NoFurtherModels()
        stack.callback(others.close)
        asyncio.run(_serve(args, others, log, stack))
    return 0


async def _serve(args: argparse.Namespace, further: FurtherModels, log: LogWriter, stack: ExitStack) -> None:
    import asyncio

    stop = _stop_signals()
    address, load, devices = read_address(args), model_loader(args, further), read_devices(args)
    metrics = open_metrics(args, log)
    if metrics is not None:
        further.watch(metrics.registry)
    watchers = open_watchers(args, metrics, stack)
    server = _server(args, address, devices, watchers)  # a port in use shows before anything is loaded
    await server.start()
    try:
        reloader = _reloader(args, further, server, address, watchers)
        if not await _unless_stopped(server.load(load), stop):
            tell(args, log, "ended while the models were being loaded")
            return
        tell(args, log, f"ready on {args.host}:{server.port}")
        reloading = asyncio.create_task(reloader.run(args.watch_models))
        await stop.wait()
        reloading.cancel()
        tell(args, log, "finishing what was accepted; a second signal ends at once")
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


def _server(args: argparse.Namespace, address: Address, devices: Sequence[str], watchers: Watchers) -> NmtServer:
    from nmt_core.serving.server import NmtServer
    from nmt_core.serving.service import NmtServicer

    client_tokens = args.queue_tokens // 4 if args.client_tokens is None else args.client_tokens
    servicer = NmtServicer(
        devices=devices,
        limits=read_limits(args),
        metrics=watchers.metrics,
        capacity=args.queue_tokens,
        client_capacity=client_tokens,
        delay=args.max_delay,
    )
    return NmtServer(servicer, address, watchers)


def _reloader(
    args: argparse.Namespace, further: FurtherModels, server: NmtServer, address: Address, watchers: Watchers
) -> Reloader:
    """What reads all anew, at SIGHUP too."""
    import asyncio
    import signal

    from nmt_core.serving.credentials import read_tokens
    from nmt_core.serving.reload import Reloader, Sources

    def exchange_tokens() -> None:
        if args.token_file:
            watchers.tokens = read_tokens(args.token_file, regular=True)

    def reopen_log() -> None:
        if watchers.log is not None:
            watchers.log.reopen()

    def check() -> None:
        check_certificate(address, watchers)

    check()
    watch_certificate(address, watchers.metrics)
    sources = Sources(
        folders=lambda: served_folders(args, further),
        loader=lambda: model_loader(args, further),
        others=(exchange_tokens, reopen_log, check),
    )
    reloader = Reloader(server, sources, watchers.metrics)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
    return reloader


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
