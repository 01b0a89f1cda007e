"""Inputs made of valid ones: the same bytes for the same seed and number, so that a number names an input."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence

_LONGEST = 1 << 14
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_NUMBERS = (
    b"0", b"-0", b"-1", b"1", b"255", b"65536", b"2147483648", b"4294967296", b"9223372036854775808",
    b"99999999999999999999999", b"9" * 400, b"9" * 5000, b"1e400", b"-1e400", b"1e-400", b"nan", b"NaN",
    b"inf", b"-Infinity",    b"0x10", b"1_000", b".5", b"5.", b"+1", b"1e", b"\xd9\xa3", b"\xc2\xb2", b"0.1.2", b"--1",
)  # fmt: skip
_STRANGE = (
    b"", b"\0", b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b" ", b"  ", b"\x1b[2J\x1b]0;x\x07", b"\x7f", b"\x85",
    b"\xff\xfe",    b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"\xc2\x9b31m",
    b"\xe2\x80\xae",    b"|||", b"|", b"||| |||", b"#", b"=", b":", b"-", b"[", b"]", b"{", b"}", b'"', b"'", b"\\",
    b"\\u0000", b"\\ud800",
    b"null", b"true", b"[]", b"{}", b"</s>", b"<unk>", b"NULL", b"../", b"/dev/zero", b"~", b"&a", b"*a",
    b"!!python/none",    b"- ", b"? ", b"<<: ", b"---\n", b"[" * 300, b"{" * 2000, b'{"a":' * 400, b"[" * 5000,
)  # fmt: skip

Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutated(seed: int, number: int, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """The input ``number``: one of ``seeds`` (in turn, as they are, then changed) with ``tokens`` of its format."""
    if number < len(seeds):
        return seeds[number]
    chance = random.Random(f"{seed} {number}")
    content = chance.choice(seeds)
    words = (*tokens, *_STRANGE, *_NUMBERS)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        change = chance.choice(_CHANGES)
        content = change(chance, content, seeds if change is _splice else words)[:_LONGEST]
    return gzip.compress(content, 1, mtime=0) if chance.random() < 0.01 else content


def _place(chance: random.Random, content: bytes) -> tuple[int, int]:
    begin = chance.randint(0, len(content))
    return begin, min(len(content), begin + int(chance.expovariate(1 / 8)))


def _flip(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    if not content:
        return b"\xff"
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def _insert(chance: random.Random, content: bytes, words: Sequence[bytes]) -> bytes:
    place = chance.randint(0, len(content))
    return content[:place] + chance.choice(words) + content[place:]


def _replace(chance: random.Random, content: bytes, words: Sequence[bytes]) -> bytes:
    begin, end = _place(chance, content)
    return content[:begin] + chance.choice(words) + content[end:]


def _random(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _place(chance, content)
    return content[:begin] + chance.randbytes(chance.randint(0, 9)) + content[end:]


def _number(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    places = [found.span() for found in _NUMBER.finditer(content)]
    begin, end = chance.choice(places) if places else (0, 0)
    return content[:begin] + chance.choice(_NUMBERS) + content[end:]


def _truncate(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    return content[: chance.randint(0, len(content))]


def _repeat(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _place(chance, content)
    return content[:end] + content[begin:end] * chance.choice((1, 2, 30, 1000)) + content[end:]


def _lines(chance: random.Random, content: bytes, _: Sequence[bytes]) -> bytes:
    lines = content.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            lines[first], lines[second] = lines[second], lines[first]
        case 1:
            lines.insert(second, lines[first])
        case _:
            del lines[first]
    return b"\n".join(lines)


def _splice(chance: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds)
    return content[: chance.randint(0, len(content))] + other[chance.randint(0, len(other)) :]


_CHANGES: tuple[Change, ...] = (
    _flip, _insert, _insert, _replace, _replace, _random, _number, _number, _truncate, _repeat, _lines, _lines, _splice,
)  # fmt: skip
