"""Models of another package, served beside those of model directories: what such a package implements.

It names its class by an entry point of the group ``hybridmt.served_models``; ``hybrid`` is that of ``--hybrid``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Protocol

from prometheus_client import CollectorRegistry

from nmt_core.base.errors import ConfigError
from nmt_core.serving.models.served import ServedModel

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
        """Add their metrics; called once, before ``load``, where the server has metrics."""
        ...

    def close(self) -> None:
        """End what they have started; called once, when the server has ended."""
        ...


class NoPluginModels:
    """A server of model directories alone."""

    names: Sequence[str] = ()

    def load(self, device: str, open_model: OpenModel) -> Mapping[str, ServedModel]:
        """None."""
        return {}

    def watch(self, registry: CollectorRegistry) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def open_hybrids(arguments: Sequence[str]) -> PluginModels:
    """The hybrids of every NAME=RECIPE. Raises ConfigError."""
    recipes: dict[str, str] = {}
    for text in arguments:
        name, _, path = text.partition("=")
        if not (name and path):
            raise ConfigError(f"--hybrid {text}: expected NAME=RECIPE")
        if name in recipes:
            raise ConfigError(f"--hybrid {text}: there is a hybrid {name} already")
        recipes[name] = path
    if not recipes:
        return NoPluginModels()
    try:
        (found,) = metadata.entry_points(group=GROUP, name="hybrid")
        make: Callable[[Mapping[str, str]], PluginModels] = found.load()
    except (ValueError, ImportError) as error:
        raise ConfigError(
            "--hybrid needs the package smt_bridge, which is not installed: pip install hybridmt"
        ) from error
    return make(recipes)
