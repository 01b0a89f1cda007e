"""Which packages the report needs, and which of them are not here."""

from __future__ import annotations

import importlib.util
import sys
from typing import NamedTuple

_ALWAYS = ("torch", "numpy", "pydantic", "yaml", "safetensors")
_FOR_TESTS = ("pytest", "hypothesis", "isal", "sacremoses", "sacrebleu", "tqdm", "google.protobuf", "grpc")
_ZSTD = () if sys.version_info >= (3, 14) else ("backports.zstd",)


class Missing(NamedTuple):
    """Packages that are not here: without those of ``always`` nothing runs, without others no tests do."""

    always: list[str]
    tests: list[str]


def missing() -> Missing:
    """Look for all packages without importing them."""
    return Missing(*([name for name in names if not _is_here(name)] for names in (_ALWAYS, (*_FOR_TESTS, *_ZSTD))))


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is a part of
        return False


def say_what_is_missing(absent: Missing) -> bool:
    """Name it before anything begins; whether nothing can run."""
    advice = "give SITE=DIR, which make gpu-site SITE=DIR PYTHON_VERSION=3.12 fills on a machine with a network"
    if absent.tests:
        print(f"test-gpu: no {', '.join(absent.tests)} here: the tests are left out ({advice})", file=sys.stderr)
    if absent.always:
        print(f"test-gpu: no {', '.join(absent.always)} here ({advice})", file=sys.stderr)
    return bool(absent.always)
