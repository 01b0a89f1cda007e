"""What the doctor says: one line for each finding, with its remedy."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """``place`` is a file, perhaps with a line; ``remedy`` says what to do."""

    level: Level
    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place}: {self.problem}; {self.remedy}"


def error(place: str, problem: str, remedy: str) -> Finding:
    """Something that stops a program or makes its output wrong."""
    return Finding("error", place, problem, remedy)


def warning(place: str, problem: str, remedy: str) -> Finding:
    """Something that costs quality or time."""
    return Finding("warning", place, problem, remedy)


def note(place: str, problem: str, remedy: str) -> Finding:
    """Nothing is wrong, but something could not be looked into."""
    return Finding("note", place, problem, remedy)
