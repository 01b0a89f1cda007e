"""Models of another package, served beside those of model folders: what such a package implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from nmt_core.serving.models.served import ServedModel

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

OpenModel = Callable[[Sequence[str]], ServedModel]
"""The model, or ensemble, of these folders on the device; one that is served already is not loaded again."""


class FurtherModels(Protocol):
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


class NoFurtherModels:
    """A server of model folders alone."""

    names: Sequence[str] = ()

    def load(self, device: str, open_model: OpenModel) -> Mapping[str, ServedModel]:
        """None."""
        return {}

    def watch(self, registry: CollectorRegistry) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
