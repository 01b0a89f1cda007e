"""Phrase tables that CreateOnDiskPt made (``PhraseDictionaryOnDisk``), as the lines of text that they hold.

The folder has, after ``OnDiskPt`` of Moses (version 7; little-endian; places are bytes from the beginning of a file)::

    Misc.dat        lines `KEY NUMBER`: Version, NumScores, RootNodeOffset (a place in Source.dat), ...
    Vocab.dat       lines `WORD ID`, of both sides
    Source.dat      nodes of a tree of source words: number of children, place of targets in TargetColl.dat, count
                    (float32), and for every child its word and its place; children stand before their parent
    TargetColl.dat  for every node: number of targets, and of each its place in TargetInd.dat, number of links, links
                    (2 numbers), scores (float32), sparse features and properties (their size, text)
    TargetInd.dat   phrases: number of words, words, number of source words, source words

Numbers have 8 bytes; a word is its id and a byte that is 1 for a non-terminal. Scores are those of the text as
float32 (Moses takes the logarithm when it reads either); they are written with as few digits as give the same
float32. Of each source the folder has the best targets alone (``tableLimit``), the best first. It keeps one count for
each source, of which no counts of pairs can be made.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from nmt_core.base.numbers import whole_number
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError

_VERSION = 7
_MAPPED = ("Source.dat", "TargetColl.dat", "TargetInd.dat")
_LINES = 10_000  # of a block
_NUMBER = struct.Struct("<Q")
_TWO = struct.Struct("<QQ")
_COUNT = 4
_WORD = struct.Struct("<QB")
_CHILD = struct.Struct("<QBQ")


class _Table(NamedTuple):
    """The files; ``words`` are found by id and whether they are non-terminals, which stand in brackets."""

    nodes: mmap.mmap
    collections: mmap.mmap
    phrases: mmap.mmap
    words: Mapping[tuple[int, int], bytes]
    scores: int


class _Damage(Exception):
    """The files are not what they should be."""


def ondisk_blocks(folder: str) -> Iterator[bytes]:
    r"""The lines of the table, each ending in ``\n``, some thousands at a time, in the order of ``LC_ALL=C sort``.

    Targets of one source have the order of the folder. Raises FormatError for another version of the format and for
    damaged files.
    """
    for name in ("Misc.dat", "Vocab.dat", *_MAPPED):
        if not os.path.isfile(os.path.join(folder, name)):  # a pipe would be waited for
            raise FormatError(os.path.join(folder, name), "is no file; copy the table again")
    facts = _facts(folder)
    words = _words(folder)
    line = 0
    try:
        with contextlib.ExitStack() as stack:
            nodes, collections, phrases = (stack.enter_context(_mapped(os.path.join(folder, name))) for name in _MAPPED)
            table = _Table(nodes, collections, phrases, words, facts["NumScores"])
            block: list[bytes] = []
            for text in _lines(table, facts["RootNodeOffset"]):
                block.append(text)
                line += 1
                if len(block) == _LINES:
                    yield b"".join(block)
                    block.clear()
            yield b"".join(block)
    except (_Damage, struct.error, IndexError, ValueError, OverflowError) as error:
        problem = "is damaged here (a copy that was cut off?); copy it again, or give the text that it was made from"
        raise FormatError(folder, problem, line=line + 1) from error


def _mapped(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _lines(table: _Table, root: int) -> Iterator[bytes]:
    waiting, most = [(root, True)], len(table.nodes) // (_TWO.size + _COUNT)
    while waiting:
        place, is_node = waiting.pop()
        if not is_node:
            yield from _targets(table, place)
            continue
        most -= 1
        if most < 0:  # nodes that are children of several would be met without end
            raise _Damage
        children, targets = _TWO.unpack_from(table.nodes, place)
        begin = place + _TWO.size + _COUNT
        behind = [(b"||| ", targets, False)]
        for number, flag, child in _CHILD.iter_unpack(_part(table.nodes, begin, children * _CHILD.size)):
            if child >= place:
                raise _Damage
            behind.append((_word(table, number, flag) + b" ", child, True))
        waiting += [(place, is_node) for _, place, is_node in sorted(behind, reverse=True)]


def _targets(table: _Table, place: int) -> Iterator[bytes]:
    """The lines of one source phrase."""
    (targets,) = _NUMBER.unpack_from(table.collections, place)
    place += _NUMBER.size
    for _ in range(targets):
        phrase, links = _TWO.unpack_from(table.collections, place)
        place += _TWO.size
        points = _part(table.collections, place, links * _TWO.size)
        place += len(points)
        scores = _part(table.collections, place, 4 * table.scores)
        sparse, place = _text(table.collections, place + len(scores))
        properties, place = _text(table.collections, place)
        target, end = _phrase(table, phrase)
        source, _ = _phrase(table, end)
        fields = [source, target, b" ".join(map(_shortest, np.frombuffer(scores, "<f4")))]
        fields.append(b" ".join(b"%d-%d" % pair for pair in _TWO.iter_unpack(points)))
        if sparse or properties:
            fields += [b"", sparse, properties]
        yield b" |||".join(b" " + field if field else b"" for field in fields)[1:] + b"\n"


def _phrase(table: _Table, place: int) -> tuple[bytes, int]:
    """The words that begin at a place, and where they end."""
    (size,) = _NUMBER.unpack_from(table.phrases, place)
    found = _part(table.phrases, place + _NUMBER.size, size * _WORD.size)
    words = [_word(table, number, flag) for number, flag in _WORD.iter_unpack(found)]
    return b" ".join(words), place + _NUMBER.size + len(found)


def _word(table: _Table, number: int, flag: int) -> bytes:
    try:
        return table.words[number, flag]
    except KeyError as error:
        raise _Damage from error


def _text(content: mmap.mmap, place: int) -> tuple[bytes, int]:
    (size,) = _NUMBER.unpack_from(content, place)
    text = _part(content, place + _NUMBER.size, size)
    return text, place + _NUMBER.size + len(text)


def _part(content: mmap.mmap, place: int, size: int) -> bytes:
    if place + size > len(content):
        raise _Damage
    return content[place : place + size]


def _shortest(number: np.float32) -> bytes:
    return str(number).removesuffix(".0").encode()


def _facts(folder: str) -> dict[str, int]:
    path = os.path.join(folder, "Misc.dat")
    facts: dict[str, int] = {}
    for line, text in enumerate(read_lines(path, as_it_is=True), start=1):
        name, _, number = text.decode("utf-8", "replace").partition(" ")
        value = whole_number(number)
        if value is None:
            raise FormatError(path, "expected a name and a number, such as `NumScores 4`", line=line)
        facts[name] = value
    missing = {"Version", "NumScores", "RootNodeOffset"} - facts.keys()
    if missing:
        raise FormatError(path, f"has no {' and no '.join(sorted(missing))}; copy the table again")
    if facts["Version"] != _VERSION:
        problem = f"is of version {facts['Version']} of the format, of which only {_VERSION} is read"
        raise FormatError(path, f"{problem}; give the text that the table was made from")
    return facts


def _words(folder: str) -> dict[tuple[int, int], bytes]:
    path = os.path.join(folder, "Vocab.dat")
    words: dict[tuple[int, int], bytes] = {}
    for line, text in enumerate(read_lines(path, as_it_is=True), start=1):
        word, _, digits = text.rpartition(b" ")
        number = whole_number(digits.decode("ascii", "replace"))
        if not word or number is None:
            raise FormatError(path, "expected a word and its number", line=line)
        words[number, 0] = word
        words[number, 1] = b"[" + word + b"]"
    return words
