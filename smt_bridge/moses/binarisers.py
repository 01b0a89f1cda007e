"""Whether Moses unpacks a text table: by its name, and with gzip alone.

It looks at the first line with ``InputFileStream`` (``moses/InputFileStream.cpp``), which goes by the ending ``.gz``;
where the name says something else, it takes packed bytes for a table of another format.
"""

from __future__ import annotations

from nmt_core.files import packing_of
from smt_bridge.errors import WiringError

_NAMES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def why_not_unpacked(path: str) -> tuple[str, str] | None:
    """What is wrong with the packing of a text table, to stand behind its path, and the remedy; None if nothing is."""
    packing = packing_of(path)
    if not packing or (packing == ".gz" and path.endswith(".gz")):
        return None
    if packing == ".gz":
        return "is packed with gzip, which Moses tells by a name that ends in .gz", "rename it"
    return f"is packed with {_NAMES[packing]}, which Moses does not read", "pack it with gzip, as *.gz"


def check_unpacked(path: str) -> None:
    """Raise WiringError for a table that Moses would not read."""
    found = why_not_unpacked(path)
    if found is not None:
        problem, remedy = found
        raise WiringError(f"{path}: {problem}; {remedy}")
