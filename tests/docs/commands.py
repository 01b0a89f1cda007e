"""The command lines of README, documents and ``--help``, as a shell would cut them."""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nmt_core.commands.program import Program, parser_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FURTHER_PAGES = [
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs" / "develop").glob("*.md")),
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "scripts" / "experiments").glob("*/README.md")),
    *sorted((ROOT / "examples").glob("*/*.md")),
]
PROGRAMS = {"nmt-core": "nmt_core", "smt-bridge": "smt_bridge"}
_BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```|((?:^    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_BEHIND_A_COMMAND = set("|&;<>()")


class Command(NamedTuple):
    """One call of one of our programs."""

    program: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.program, *self.words))


def section(page: Path, heading: str) -> str:
    """What stands below a heading of a page, up to the next one of its level or above."""
    found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^##|\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[2]


def blocks(text: str) -> Iterator[str]:
    """The blocks of a page that are command lines: without a language, fenced or indented."""
    for found in _BLOCKS.finditer(text):
        if not found[1] and "`" not in (found[3] or ""):  # what is indented may be the text of a list
            yield found[2] or "".join(f"{line[4:]}\n" for line in found[3].splitlines())


def commands(script: str) -> Iterator[Command]:
    """Every call in some lines of shell."""
    for line in script.replace("\\\n", " ").splitlines():
        if not any(program in line for program in PROGRAMS):
            continue
        lexer = shlex.shlex(re.sub(r"<<<|(?<!\S)2>", "<", line), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        for place, word in enumerate(words):
            if word in PROGRAMS:
                yield Command(word, tuple(_arguments(words[place + 1 :])))


def _arguments(words: list[str]) -> Iterator[str]:
    """Up to the end of the command, without what is read from and written to."""
    for place, word in enumerate(words):
        if set(word) <= set("<>"):
            continue
        if set(word) <= _BEHIND_A_COMMAND:
            return
        if not place or set(words[place - 1]) - set("<>"):
            yield word


def program_of(name: str) -> Program:
    """What the program is made of."""
    program: Program = importlib.import_module(f"{PROGRAMS[name]}.commands.main").PROGRAM
    return program


@functools.cache
def parser(name: str) -> argparse.ArgumentParser:
    """The parser of a program's command lines."""
    return parser_of(program_of(name))
