"""What a step of the preparation is: a line in, a line out, and back as far as that goes.

The order is that of the fields of ``settings.PreparationConfig``. A step that learns is made from the
file it learned, in the first pass too, so that a replay cannot differ from it.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, Protocol

from nmt_core.errors import ConfigError

Side = Literal["source", "target"]
"""Of a corpus; a monolingual one has a target only."""


class LineStep(Protocol):
    """A change to one line that depends on nothing but the line and what was set and learned before."""

    def apply(self, line: str) -> str:
        """Towards training text."""
        ...

    def undo(self, line: str) -> str:
        """From a model's output towards text for people; the line itself where there is nothing to undo."""
        ...


def import_optional(module: str, package: str, purpose: str) -> Any:
    """A library that only some steps need, or a ConfigError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{purpose} needs {package}: pip install 'hybridmt[prepare]'") from error
