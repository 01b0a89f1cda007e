"""Names of a package that are loaded when they are asked for, so that ``--help`` need not wait for PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from nmt_core.base.errors import what_is_missing


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package`` (PEP 562); ``homes`` has the module of every public name."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(importlib.import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            remedy = what_is_missing(error)
            if remedy:
                error.add_note(remedy)
            raise

    return find, lambda: sorted(homes)
