"""What may be wrong with a phrase table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np

from nmt_core.errors import InputError
from smt_bridge.doctor.findings import Finding, error, note, warning
from smt_bridge.doctor.words import Words
from smt_bridge.fields import text_of
from smt_bridge.formats.feature_kinds import binarised_kind
from smt_bridge.formats.phrase_table import read_windows, split_window


class Table:
    """A look at the first lines of a table: ``scores`` per line (None where it cannot be read), and its words."""

    def __init__(self, path: str, *, most: int) -> None:
        self.path = path
        self.scores: int | None = None
        self.findings: list[Finding] = []
        self.source = Words(path, Counter())
        self.target = Words(path, Counter())
        kind = binarised_kind(path)
        if not os.path.exists(path):
            self.findings.append(error(path, "there is no such table", "correct the path"))
            return
        if kind is not None:
            problem = f"is a table for {kind}: its phrase pairs are not looked into"
            self.findings.append(note(path, problem, "give the text that it was made from"))
            return
        try:
            self._read(most)
        except InputError as problem:
            self.findings.append(error(str(problem), "Moses would stop or drop the line", "correct it"))

    def _read(self, most: int) -> None:
        seen = 0
        before = b""
        unsorted = repeated = double = above = 0
        for window in read_windows(self.path):
            self.scores = window.scores
            double += sum(b"  " in line.split(b"|||", 3)[2] for line in window.lines if line.count(b"|||") > 2)
            columns = split_window(window)
            lines = list(zip(columns.sources, columns.targets, strict=True))
            repeated += len(lines) - len(set(lines))
            for source in columns.sources:
                key = source + b"|||"  # as LC_ALL=C sort compares whole lines
                unsorted += key < before
                before = key
            values = np.array(b" ".join(columns.scores).split(), dtype=np.float64)
            above += int((values > 1.0).sum())
            for counts, phrases in ((self.source.counts, columns.sources), (self.target.counts, columns.targets)):
                counts.update(word for phrase in phrases for word in text_of(phrase).split(" ") if word)
            seen += len(lines)
            if most and seen >= most:
                break
        self.findings += self._problems(unsorted=unsorted, repeated=repeated, double=double, above=above, seen=seen)

    def _problems(self, *, unsorted: int, repeated: int, double: int, above: int, seen: int) -> Iterator[Finding]:
        if unsorted:
            yield warning(
                self.path,
                f"{unsorted} of {seen} sources stand before a smaller one",
                "sort it (LC_ALL=C sort): binarisers need it, and neural scoring shares less without",
            )
        if repeated:
            yield warning(self.path, f"{repeated} phrase pairs come twice", "keep one line of each")
        if double:
            yield warning(
                self.path, f"{double} lines have two blanks between scores", "ProbingPT crashes: write it anew"
            )
        if above > 1.5 * seen:
            problem = f"{above} scores are above 1"
            yield warning(self.path, problem, "are these counts, or logarithms with the sign turned?")
