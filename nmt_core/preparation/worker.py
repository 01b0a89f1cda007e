"""What a process does with a chunk: steps, then filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.preparation.chunks import Chunk
from nmt_core.preparation.duplicates import Hashes, hash_of
from nmt_core.preparation.filters import Filters, Reason
from nmt_core.preparation.models import open_steps
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.tally import Tally


class Prepared(NamedTuple):
    """What is left of a chunk: the lines of each side, their numbers and hashes, and what was dropped."""

    sides: tuple[list[str], ...]
    numbers: list[int]
    hashes: Hashes
    tally: Tally


class ChunkWorker:
    """Applies ``names``, steps of the preparation; ``first`` says that this is the pass with the filters."""

    def __init__(self, config: PreparationConfig, names: Sequence[str], folder: str, *, first: bool) -> None:
        self._steps = [open_steps(config, side, names, folder) for side in config.languages]
        self._filters = Filters(config.filters, config.languages) if first else None
        self._hashing = first and config.filters.duplicates

    def __call__(self, chunk: Chunk) -> Prepared:
        """Do one chunk."""
        tally = Tally()
        rows: list[list[str]] = []
        numbers: list[int] = []
        for number, raw in enumerate(zip(*chunk.sides, strict=True), start=chunk.first):
            tally.read += 1
            found = self._prepare(raw)
            if isinstance(found, Reason):
                tally.drop(found, number)
            else:
                rows.append(found)
                numbers.append(number)
        hashes = np.array([hash_of(row) for row in rows] if self._hashing else [], dtype=np.uint64)
        sides = tuple([row[place] for row in rows] for place in range(len(self._steps)))
        return Prepared(sides, numbers, hashes, tally)

    def _prepare(self, raw: Sequence[bytes]) -> list[str] | Reason:
        texts = [line.decode() for line in raw] if self._filters is None else self._filters.decode(raw)
        if isinstance(texts, Reason):
            return texts
        lines = list(texts)
        for place, steps in enumerate(self._steps):
            for step in steps:
                lines[place] = step.apply(lines[place])
        verdict = None if self._filters is None else self._filters.judge(texts, lines)
        return lines if verdict is None else verdict
