"""The steps of a saved preparation for new lines: one line in, one line out."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from nmt_core.preparation.models import open_steps
from nmt_core.preparation.parallel import map_ordered
from nmt_core.preparation.record import read_record
from nmt_core.preparation.settings import LEARNED, PLAIN
from nmt_core.preparation.steps import LineStep, Side

_LINES = 1000


class Replay:
    """Steps of one side, forth and back."""

    def __init__(self, steps: Sequence[LineStep]) -> None:
        self._steps = tuple(steps)

    @classmethod
    def open(cls, path: str, side: Side) -> Replay:
        """The preparation that ``path``, a ``preparation.json``, speaks of."""
        return cls(open_steps(read_record(path).settings, side, [*PLAIN, *LEARNED], os.path.dirname(path)))

    def apply(self, line: str) -> str:
        """What the line would have been in the corpus, had no filter dropped it."""
        for step in self._steps:
            line = step.apply(line)
        return line

    def undo(self, line: str) -> str:
        """Text for people from a line of such a corpus or a model's output."""
        for step in reversed(self._steps):
            line = step.undo(line)
        return line


def replay_lines(path: str, side: Side, lines: Iterable[str], *, reverse: bool, jobs: int) -> Iterator[str]:
    """``apply``, or ``undo`` if ``reverse``, to each of ``lines``; as each is read where there is one job."""
    make = functools.partial(_Lines, path, side, reverse=reverse)
    size = 1 if jobs == 1 else _LINES
    stream = iter(lines)
    chunks = iter(lambda: list(itertools.islice(stream, size)), [])
    return itertools.chain.from_iterable(map_ordered(make, chunks, jobs=jobs))


class _Lines:
    """What a process does."""

    def __init__(self, path: str, side: Side, *, reverse: bool) -> None:
        replay = Replay.open(path, side)
        self._change = replay.undo if reverse else replay.apply

    def __call__(self, lines: list[str]) -> list[str]:
        return [self._change(line) for line in lines]
