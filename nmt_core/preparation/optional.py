"""Libraries that only some steps need."""

from __future__ import annotations

import importlib
from typing import Any

from nmt_core.errors import ConfigError


def import_optional(module: str, package: str, purpose: str) -> Any:
    """The module, or a ConfigError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{purpose} needs {package}: pip install 'hybridmt[prepare]'") from error
