"""The models of a server: those of directories and of plugins, how they are loaded, and loaded again at SIGHUP.

Another package adds models by an entry point of the group ``hybridmt.served_models``; ``hybrid`` is ``--hybrid``'s.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.credentials import Certificates, read_tokens
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.devices import Load
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.options import (
    CandidateChoice,
    LexiconChoice,
    model_folders,
    named,
    named_candidates,
    named_folders,
    named_lexicons,
)
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.server import NmtServer

_log = logging.getLogger(__name__)

GROUP = "hybridmt.served_models"

OpenModel = Callable[[Sequence[str]], ServedModel]
"""The model, or ensemble, of these directories on the device; one that is served already is not loaded again."""


class PluginModels(Protocol):
    """Models that are made of neural ones and of something else."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all of them; none is that of another model of the server."""
        ...

    def load(self, device: str, open_model: OpenModel) -> Mapping[str, ServedModel]:
        """Make them for a device; called in a thread, again for every device and every reload. Raises NmtError."""
        ...

    def watch(self, registry: CollectorRegistry) -> None:
        """Add their metrics; called once, before ``load``."""
        ...

    def close(self) -> None:
        """End what they have started; called once, when the server has ended."""
        ...


def open_hybrids(arguments: Sequence[str]) -> PluginModels | None:
    """The hybrids of every NAME=RECIPE, if any. Raises ConfigError."""
    recipes = {name: value[0] for name, value in named("hybrid", arguments).items()}
    if not recipes:
        return None
    try:
        (found,) = metadata.entry_points(group=GROUP, name="hybrid")
        make: Callable[[Mapping[str, str]], PluginModels] = found.load()
    except (ValueError, ImportError) as error:
        raise ConfigError(
            "--hybrid needs the package smt_bridge, which is not installed: pip install hybridmt"
        ) from error
    return make(recipes)


def served_folders(args: argparse.Namespace, plugins: PluginModels | None) -> dict[str, list[str]]:
    """The directories of all models but the ``plugins`` ones. Raises ConfigError."""
    folders, hybrids = named_folders(args.model), plugins.names if plugins else ()
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders and not hybrids:
        raise ConfigError("no model: give --model NAME=DIR, --models DIR or --hybrid NAME=RECIPE")
    if twice := sorted(folders.keys() & set(hybrids)):
        raise ConfigError(f"two models are called {twice[0]}")
    return folders


def model_loader(args: argparse.Namespace, plugins: PluginModels | None, limits: Limits) -> Load:
    """What loads the models for a device. Raises ConfigError."""
    folders = served_folders(args, plugins)
    lexicons, candidates = named_lexicons(args.lexicon, folders), named_candidates(args.candidates, folders)
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    def load(device: str) -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": limits.batch * args.beam}

        @functools.cache
        def of_folders(
            parts: tuple[str, ...], lexicon: LexiconChoice | None, candidates: CandidateChoice | None
        ) -> ServedModel:
            return open_served_model(parts, defaults, lexicon=lexicon, candidates=candidates, **options)

        models = {
            name: of_folders(tuple(parts), lexicons.get(name), candidates.get(name)) for name, parts in folders.items()
        }
        if plugins is not None:  # all arguments are given, so that a model that is served already has the same key
            models |= plugins.load(device, lambda parts: of_folders(tuple(parts), None, None))
        return models

    return load


class Reloader:
    """Exchanges tokens and models while the server answers; what fails is logged, and the old ones stay."""

    def __init__(
        self, server: NmtServer, token_file: str | None, certificates: Certificates | None, loader: Callable[[], Load]
    ) -> None:
        self._server, self._token_file, self._certificates, self._loader = server, token_file, certificates, loader
        self._wanted = asyncio.Event()
        if certificates is not None:
            certificates.check()
            server.servicer.metrics.watch_certificate(certificates.end)

    def request(self) -> None:
        """Exchange the tokens now, and the models soon; called by a signal.

        Tokens that are revoked do not wait until large models are loaded.
        """
        with self._reported("the tokens there were stay"):
            if self._token_file is not None:
                self._server.admission.tokens = read_tokens(self._token_file, regular=True)
        with self._reported("new connections use what there was"):
            if self._certificates is not None:
                self._certificates.check()
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
