r"""Selection of training text that is like a domain, by n-gram models of the domain and of text in general.

Moore and Lewis 2010, section 2: the lines s with the least difference of cross-entropies,

    H_I(s) - H_N(s),    H(s) = - log2 p(s) / (|s| + 1),

I being a model of in-domain text and N one of general text. H is in bits a word, the end of the line being one.
Axelrod et al. 2011, section 3.2: of a pair (s, t) the sum of the differences of both sides,

    [H_I,src(s) - H_O,src(s)] + [H_I,trg(t) - H_O,trg(t)].

A first pass writes the number of every line to a file without a name. The number up to which lines are kept is found
there, 16 bits after the other, and a second pass copies these lines. So memory is constant.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.base.messages import counted
from nmt_core.base.words import split_words, whole_number
from nmt_core.files import is_written_through, open_output
from nmt_core.files.lines import read_parallel_lines
from nmt_core.files.reading import check_regular
from nmt_core.kenlm import NgramModel
from nmt_core.preparation.corpus import LINES, read_chunks

_LINE = np.dtype([("score", "<f8"), ("words", "<i8")])  # words of the last file
_BITS = 16  # of a score that are looked at together
_EDGES = np.arange(-10.0, 11.0)  # of the histogram; most sums of two sides are within

Block = npt.NDArray[np.void]


class Keep(NamedTuple):
    """How much is kept: a share of the lines, or a number of lines, or of words of the last file."""

    amount: float
    unit: Literal["share", "lines", "words"]

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Read ``0.3``, ``50000`` or ``1000000words``. Raises ConfigError for anything else."""
        number = whole_number(text.removesuffix("words"))
        if number:
            return cls(number, "words" if text.endswith("words") else "lines")
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if not 0.0 < share < 1.0:
            raise ConfigError(f"--keep {text}: expected a share such as 0.3, a number of lines, or Nwords")
        return cls(share, "share")


class SideModels(NamedTuple):
    """The two models of one side."""

    in_domain: NgramModel
    general: NgramModel

    def difference(self, words: Sequence[str]) -> float:
        """H_I - H_N of a line of these words, in bits a word."""
        log_odds = self.general.log_prob(words) - self.in_domain.log_prob(words)
        return log_odds / math.log(2) / (len(words) + 1)


class Selection:
    """What was read and kept: lines, words of the last file, and the largest score of a line that was kept."""

    def __init__(self) -> None:
        self.read = self.kept = self.kept_words = 0
        self.worst = -math.inf
        self.histogram = np.zeros(len(_EDGES) + 1, dtype=np.int64)

    def add_read(self, block: Block) -> None:
        """Count lines that were read."""
        self.read += len(block)
        self.histogram += np.bincount(np.digitize(block["score"], _EDGES), minlength=len(self.histogram))

    def add_kept(self, block: Block) -> None:
        """Count lines that were kept."""
        self.kept += len(block)
        self.kept_words += int(block["words"].sum())
        self.worst = max(self.worst, block["score"].max(initial=-math.inf))

    def report(self) -> str:
        """The histogram, and what was kept, for people."""
        rows = [f"{'bits a word':>13}  {'lines':>11}      %"]
        bounds = [-math.inf, *_EDGES, math.inf]
        for (low, high), lines in zip(itertools.pairwise(bounds), self.histogram.tolist(), strict=True):
            if lines:
                share = 100 * lines / self.read
                rows.append(f"{low:5.1f} to {high:4.1f}  {lines:>11,}  {share:5.2f}  {'#' * round(share)}".rstrip())
        kept = f"kept {self.kept:,} of {counted(self.read, 'line')} ({counted(self.kept_words, 'word')})"
        return "\n".join([*rows, f"{kept}, to {self.worst:.4f} bits a word"])


def select(
    inputs: Sequence[str],
    outputs: Sequence[str],
    models: Sequence[SideModels],
    keep: Keep,
    progress: Callable[[int], None] = lambda _: None,
) -> Selection:
    """Write the lines of the inputs, which match line by line, that have the least scores; of equal ones the first.

    ``models`` are one for each input. The order stays. Each input is read twice; ``progress`` is called with numbers of
    lines of the first time. Raises InputError for inputs that are not files or do not match, ConfigError where nothing
    is kept.
    """
    for path in inputs:
        check_regular(path)
    beside = tempfile.gettempdir() if is_written_through(outputs[0]) else os.path.dirname(os.path.abspath(outputs[0]))
    selection = Selection()
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(open_output(path)) for path in outputs]
        try:
            scores = stack.enter_context(tempfile.TemporaryFile(dir=beside))
            for block in _scored(inputs, models):
                scores.write(block.tobytes())
                selection.add_read(block)
                progress(len(block))
        except OSError as error:
            raise NmtError(f"{beside}: cannot be written ({error.strerror})") from error
        for sides, kept in _kept(inputs, scores, _Limit.find(scores, keep, selection.read)):
            selection.add_kept(kept)
            for stream, lines in zip(streams, sides, strict=True):
                stream.writelines(line + b"\n" for line in lines)
        if not selection.kept:
            raise ConfigError(f"nothing is kept of {counted(selection.read, 'line')} of {inputs[-1]}; keep more")
    return selection


def _scored(inputs: Sequence[str], models: Sequence[SideModels]) -> Iterator[Block]:
    """The score of every line, and its words in the last file."""
    together = read_parallel_lines(inputs)
    while chunk := list(itertools.islice(together, LINES)):
        block = np.zeros(len(chunk), dtype=_LINE)
        for side, judge in zip(zip(*chunk, strict=True), models, strict=True):
            lines = [split_words(line) for line in side]
            block["score"] += [judge.difference(words) for words in lines]
            block["words"] = [len(words) for words in lines]
        yield block


def _read(scores: IO[bytes]) -> Iterator[Block]:
    """The same from the file, chunk by chunk."""
    scores.seek(0)
    while content := scores.read(LINES * _LINE.itemsize):
        yield np.frombuffer(content, dtype=_LINE)


def _keys(block: Block) -> npt.NDArray[np.uint64]:
    """Whole numbers in the order of the scores."""
    bits = (block["score"] + 0.0).view(np.uint64)  # of two zeros one
    return np.where(bits >> 63, ~bits, bits | 1 << 63)


class _Limit(NamedTuple):
    """Lines with keys below ``key`` are kept, and the first of those that have it, as far as ``room`` is for them."""

    key: int
    room: int
    by_words: bool

    @classmethod
    def find(cls, scores: IO[bytes], keep: Keep, lines: int) -> _Limit:
        """The limit up to which lines are kept."""
        room = round(keep.amount * lines) if keep.unit == "share" else int(keep.amount)
        limit = cls(0, room, keep.unit == "words")
        for shift in range(64 - _BITS, -1, -_BITS):
            sizes = np.zeros(1 << _BITS)
            for block in _read(scores):
                keys = _keys(block)
                here = (keys >> shift >> _BITS) == limit.key  # with the digits found so far
                digits = (keys[here] >> shift & (1 << _BITS) - 1).astype(np.int64)
                sizes += np.bincount(digits, limit.sizes(block)[here], minlength=len(sizes))
            sums = np.cumsum(sizes)
            digit = int(np.searchsorted(sums, limit.room, side="right"))
            if digit == len(sums):  # there is room for all
                return limit._replace(key=1 << 64)
            below = int(sums[digit - 1]) if digit else 0
            limit = limit._replace(key=limit.key << _BITS | digit, room=limit.room - below)
        return limit

    def sizes(self, block: Block) -> npt.NDArray[np.int64]:
        """The room that each line takes."""
        return block["words"] if self.by_words else np.ones(len(block), dtype=np.int64)


def _kept(inputs: Sequence[str], scores: IO[bytes], limit: _Limit) -> Iterator[tuple[list[list[bytes]], Block]]:
    """The lines of every side that are kept, and their scores, chunk by chunk."""
    taken = 0
    for chunk, block in itertools.zip_longest(read_chunks(inputs, lines=LINES), _read(scores)):
        if chunk is None or block is None or len(chunk.sides[0]) != len(block):
            raise InputError(inputs[0], "was changed while it was read")
        keys = _keys(block)
        tied = keys == limit.key
        sums = taken + np.cumsum(np.where(tied, limit.sizes(block), 0))
        taken = int(sums[-1])
        places = np.flatnonzero((keys < limit.key) | (tied & (sums <= limit.room)))
        yield [[side[place] for place in places] for side in chunk.sides], block[places]
