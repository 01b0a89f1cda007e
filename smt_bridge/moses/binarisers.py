"""Moses' own programs for tables: the commands that binarise them, and which packed ones are read.

The decoder looks at the first line of a text table with ``InputFileStream`` (``moses/InputFileStream.cpp``), which
unpacks gzip alone, and only under a name that ends in ``.gz``; other packed bytes are a table of another format for it.
"""

from __future__ import annotations

import shlex

from nmt_core.files import packing_of
from smt_bridge.errors import WiringError
from smt_bridge.moses.feature_kinds import kind_of

_DIRECT = 2  # index of p(target | source) among the scores of Moses: by it targets are ranked
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


def binarising_command(kind: str, table: str, *, scores: int, factors: tuple[int, int] = (1, 1)) -> str:
    """The shell command that makes a table of that class of feature functions; names of files with blanks in quotes.

    ``factors`` are those of source and target words. Targets of a table with one or two scores are ranked by the last.
    """
    rank = min(_DIRECT, scores - 1)
    return kind_of(kind).made_by.format(
        table=shlex.quote(table),
        stem=shlex.quote(stem_of(table)),
        scores=scores,
        rank=rank,
        other_rank="" if rank == _DIRECT else f" -rankscore {rank}",
        source_factors=factors[0],
        target_factors=factors[1],
    )


def stem_of(table: str) -> str:
    """What the names of binarised tables begin with."""
    return table.removesuffix(".gz")
