"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_core.inference.beam_search import DecodingConfig
    from nmt_core.serving.server import NmtServer, ServedModel, TranslateOptions

NAME = "serve"
HELP = "serve models over gRPC"

_EPILOG = """\
examples:
  nmt-core serve --model en-fr=runs/en-fr --port 50551
  nmt-core serve --model en-fr=runs/a,runs/b --model fr-en=runs/c --port 50551 --device cuda

NAME=DIR,DIR serves an ensemble. The connection is not encrypted: the server listens on this machine only
unless --host says otherwise. SIGTERM and Ctrl-C answer what was accepted, then end.
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

    from nmt_core.errors import NmtError
    from nmt_core.inference.beam_search import DecodingConfig

    try:
        from nmt_core.serving.server import NmtServicer
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error

    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")
    asyncio.run(_serve(args, lambda: NmtServicer(_models(args, defaults))))
    return 0


async def _serve(args: argparse.Namespace, make_servicer: Any) -> None:
    import asyncio
    import signal

    from nmt_core.serving.server import NmtServer

    server = NmtServer(make_servicer(), host=args.host, port=args.port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start(lambda: _warm_up(server))
    print(f"nmt-core serve: ready on {args.host}:{server.port}", file=sys.stderr, flush=True)
    await stop.wait()
    print("nmt-core serve: finishing what was accepted", file=sys.stderr, flush=True)
    await server.stop()


def _models(args: argparse.Namespace, defaults: DecodingConfig) -> dict[str, ServedModel]:
    from nmt_core.errors import ConfigError

    models: dict[str, ServedModel] = {}
    for text in args.model:
        name, equals, folders = text.partition("=")
        if not (name and equals and folders):
            raise ConfigError(f"--model {text}: expected NAME=DIR")
        if name in models:
            raise ConfigError(f"--model {text}: there is a model {name} already")
        models[name] = open_served_model(folders.split(","), defaults, device=args.device, dtype=args.dtype)
    return models


def open_served_model(folders: Sequence[str], defaults: DecodingConfig, *, device: str, dtype: str) -> ServedModel:
    """Load a model (or ensemble) for the server."""
    from nmt_core.device import choose_device, choose_dtype
    from nmt_core.inference.pair_scorer import ModelPairScorer
    from nmt_core.inference.translator import Translator
    from nmt_core.models.checkpoint import load_model
    from nmt_core.serving.server import ServedModel

    loaded = [load_model(folder, device=choose_device(device), dtype=choose_dtype(dtype)) for folder in folders]

    def translate(texts: Sequence[str], options: TranslateOptions) -> Sequence[Any]:
        translator = Translator(loaded, config=options.decoding, attention=options.attention)
        return translator.translate(texts, raw=options.raw)

    return ServedModel(
        scorer=ModelPairScorer(loaded),
        translate=translate,
        defaults=defaults,
        source_language=loaded[0].text.source_language,
        target_language=loaded[0].text.target_language,
        source_words=len(loaded[0].source),
        target_words=len(loaded[0].target),
    )


def _warm_up(server: NmtServer) -> None:
    """Let every model score something, so that the first request does not pay for it."""
    from nmt_core.interfaces import SentencePair

    for model in server.servicer.models.values():
        model.scorer.score([SentencePair("a", "a")])
