"""What may be wrong with a phrase table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from smt_bridge.doctor.findings import Finding, Words, error, note, warning
from smt_bridge.moses.feature_functions import binarised_kind
from smt_bridge.moses_lines import SEPARATOR, has_wide_blanks, phrase_of, text_of
from smt_bridge.tables.lines import OtherTable
from smt_bridge.tables.table import Window, phrases_of, read_windows, split_window


class Table:
    """A look at the first lines of a table: ``scores`` per line (None where it cannot be read), and its words."""

    def __init__(self, path: str, *, most: int) -> None:
        self.path = path
        self.scores: int | None = None
        self.findings: list[Finding] = []
        self.source = Words(path, Counter())
        self.target = Words(path, Counter())
        if not os.path.exists(path):
            self.findings.append(error(path, "there is no such table", "correct the path"))
            return
        kind = binarised_kind(path)
        if kind is not None:
            problem = f"is a table for {kind}: its phrase pairs are not looked into"
            self.findings.append(note(path, problem, "give the text that it was made from"))
            return
        try:
            self._read(most)
        except OtherTable as problem:
            self.findings.append(note(path, f"is not looked into: {problem.problem}", "look at it by hand"))
        except InputError as problem:
            self.findings.append(error(str(problem), "Moses would stop or drop the line", "correct it"))

    def _read(self, most: int) -> None:
        seen = 0
        before = b""
        unsorted = repeated = double = wide = above = 0
        for window in read_windows(self.path):
            self.scores = window.scores
            double += sum(b"  " in line.split(b"|||", 3)[2] for line in window.lines if line.count(b"|||") > 2)
            columns = split_window(window)
            phrases = list(zip(columns.sources, columns.targets, strict=True))
            wide += sum(has_wide_blanks(source) or has_wide_blanks(target) for source, target in phrases)
            lines = [(*map(phrase_of, pair), points) for pair, points in zip(phrases, _alignments(window), strict=True)]
            repeated += len(lines) - len(set(lines))
            for source in columns.sources:
                key = source + b"|||"  # as LC_ALL=C sort compares whole lines
                unsorted += key < before
                before = key
            values = np.array(b" ".join(columns.scores).split(), dtype=np.float64)
            above += int((values > 1.0).sum())
            for pair in phrases_of(window, columns):
                for counts, text in zip((self.source.counts, self.target.counts), pair, strict=True):
                    counts.update(word for word in text_of(text).split(" ") if word)
            seen += len(lines)
            if most and seen >= most:
                break
        self.findings += self._problems(
            unsorted=unsorted, repeated=repeated, double=double, wide=wide, above=above, seen=seen
        )

    def _problems(
        self, *, unsorted: int, repeated: int, double: int, wide: int, above: int, seen: int
    ) -> Iterator[Finding]:
        if unsorted:
            yield warning(
                self.path,
                f"{unsorted:,} of {counted(seen, 'source stands', 'sources stand')} before a smaller one",
                "sort it (LC_ALL=C sort): binarisers need it, and neural scoring shares less without",
            )
        if repeated:
            yield warning(
                self.path,
                f"{counted(repeated, 'phrase pair comes', 'phrase pairs come')} twice",
                "keep one line of each",
            )
        if double:
            yield warning(
                self.path,
                f"{counted(double, 'line has', 'lines have')} two blanks between scores",
                "ProbingPT crashes: write it again",
            )
        if wide:
            problem = f"{counted(wide, 'line has', 'lines have')} several blanks or a tab between words of a phrase"
            remedy = (
                "write single ones (tr -s ' \\t' ' '): Moses does not load such a ProbingPT, and CompactPT loses them"
            )
            yield warning(self.path, problem, remedy)
        if above > 1.5 * seen:
            problem = f"{counted(above, 'score is', 'scores are')} above 1"
            yield warning(self.path, problem, "are these counts, or logarithms with the sign turned?")


def _alignments(window: Window) -> list[bytes]:
    """The fourth field of every line of rules, which tells rules of the same words apart; of phrases nothing."""
    if not window.rules:
        return [b""] * window.size
    return [[*line.split(SEPARATOR, 4), b""][3] for line in window.lines]
