"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from nmt_core.inference.beam_search import DecodingConfig
    from nmt_core.serving.server import ServedModel, TranslateOptions

NAME = "serve"
HELP = "serve models over gRPC"

_EPILOG = """\
examples:
  nmt-core serve --model en-fr=runs/en-fr --port 50551
  nmt-core serve --model en-fr=runs/a,runs/b --model fr-en=runs/c --port 50551 --device cuda

NAME=DIR,DIR serves an ensemble. The connection is not encrypted: the server listens on this machine only
unless --host says otherwise. SIGTERM and Ctrl-C answer what was accepted, then end; a second one ends at once.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("--model", action="append", required=True, metavar="NAME=DIR", help="a model and its name")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=50551, metavar="N", help="0 takes a free one (default: 50551)")
    parser.add_argument("--beam", type=int, default=12, metavar="K", help="where a request says nothing (default: 12)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument("--dtype", default="float32", help="float32, float64 or bfloat16 (default: float32)")


def run(args: argparse.Namespace) -> int:
    """Load the models and serve until told to stop."""
    import asyncio
    import os

    from nmt_core.errors import ConfigError, NmtError

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told in our own words
    if not 0 <= args.port <= 65535:
        raise ConfigError(f"--port {args.port}: expected 0 to 65535")
    folders = _named_folders(args.model)
    try:
        import nmt_core.serving.server  # noqa: F401
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error
    asyncio.run(_serve(args, folders))
    return 0


async def _serve(args: argparse.Namespace, folders: Mapping[str, Sequence[str]]) -> None:
    from nmt_core.errors import ConfigError
    from nmt_core.inference.beam_search import DecodingConfig
    from nmt_core.serving.server import Limits, NmtServer, NmtServicer

    if args.beam > Limits().beam:
        raise ConfigError(f"--beam {args.beam}: at most {Limits().beam}")
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    def load() -> dict[str, ServedModel]:
        return {
            name: open_served_model(parts, defaults, device=args.device, dtype=args.dtype)
            for name, parts in folders.items()
        }

    server = NmtServer(NmtServicer(), host=args.host, port=args.port)  # a port in use shows before anything is loaded
    stop = _stop_signals()
    await server.start()
    try:
        await server.load(load)
        _say(f"ready on {args.host}:{server.port}")
        await stop.wait()
        _say("finishing what was accepted; a second signal ends at once")
    finally:
        await server.stop()


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
    print(f"nmt-core {NAME}: {remark}", file=sys.stderr, flush=True)


def _named_folders(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The folders of every NAME=DIR,DIR. Raises ConfigError."""
    from nmt_core.errors import ConfigError

    folders: dict[str, list[str]] = {}
    for text in arguments:
        name, equals, parts = text.partition("=")
        if not (name and equals and all(parts.split(","))):
            raise ConfigError(f"--model {text}: expected NAME=DIR, or NAME=DIR,DIR for an ensemble")
        if name in folders:
            raise ConfigError(f"--model {text}: there is a model {name} already")
        folders[name] = parts.split(",")
    return folders


def open_served_model(folders: Sequence[str], defaults: DecodingConfig, *, device: str, dtype: str) -> ServedModel:
    """Load a model (or ensemble) for the server."""
    from nmt_core.device import choose_device, choose_dtype
    from nmt_core.inference.pair_scorer import ModelPairScorer
    from nmt_core.inference.translator import Translator
    from nmt_core.models.checkpoint import load_model
    from nmt_core.serving.server import ServedModel

    loaded = [load_model(folder, device=choose_device(device), dtype=choose_dtype(dtype)) for folder in folders]

    @functools.lru_cache(maxsize=16)
    def translator(decoding: DecodingConfig, attention: bool) -> Translator:
        return Translator(loaded, config=decoding, attention=attention)

    def translate(texts: Sequence[str], options: TranslateOptions) -> Sequence[Any]:
        return translator(options.decoding, options.attention).translate(texts, raw=options.raw)

    return ServedModel(
        scorer=ModelPairScorer(loaded),
        translate=translate,
        defaults=defaults,
        source_language=loaded[0].text.source_language,
        target_language=loaded[0].text.target_language,
        source_words=len(loaded[0].source),
        target_words=len(loaded[0].target),
    )
