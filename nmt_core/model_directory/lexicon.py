"""The lexicon that a model of annotated text carries, for the words that it copies and for those it is asked about."""

from __future__ import annotations

import functools
import gzip
import hashlib
import os
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError, InputError, ModelError
from nmt_core.files import read_blocks
from nmt_core.files.reading import check_regular
from nmt_core.text.lexicon import Lexicon, read_lexicon

_MOST_BYTES = 256 << 20  # packed
_MOST_PACKED = 64  # times; lexicons of words are packed about 5 times


@dataclass(frozen=True)
class CarriedLexicon:
    """A lexicon, and its file as it is in the directory."""

    lexicon: Lexicon
    content: bytes

    @staticmethod
    def of(lexicon: Lexicon) -> CarriedLexicon:
        """The same lexicon makes the same bytes. Raises ConfigError for one that is too large to be carried."""
        text = "".join(f"{line}\n" for line in lexicon.lines()).encode("utf-8", "surrogateescape")
        content = gzip.compress(text, mtime=0)
        if len(content) > _MOST_BYTES:
            problem = f"the lexicon has {len(content):,} bytes when packed, and a model carries {_MOST_BYTES:,}"
            raise ConfigError(f"{problem}; keep the likeliest words of each with 'nmt-core lexicon --top 10'")
        return CarriedLexicon(lexicon, content)

    @staticmethod
    def load(path: str, expected: str) -> CarriedLexicon:
        """Read the file of this SHA-256. Raises InputError, or ModelError where it is another."""
        check_regular(path)
        if os.path.getsize(path) > _MOST_BYTES:
            raise InputError(path, f"has more than {_MOST_BYTES:,} bytes, which no lexicon of a model has")
        with open(path, "rb") as stream:
            content = stream.read()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ModelError(f"{path}: is not as it was saved; copy the model directory again, the whole of it")
        _check_unpacked(path, len(content))
        return CarriedLexicon(read_lexicon(path), content)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.content).hexdigest()


def _check_unpacked(path: str, packed: int) -> None:
    """Raise InputError for a file of so many bytes that unpacks to more lines, or bytes, than words make of them."""
    lines = size = 0
    for block in read_blocks(path):
        lines, size = lines + block.count(b"\n"), size + len(block)
        if lines > packed or size > _MOST_PACKED * packed:
            raise InputError(path, "unpacks to more than any lexicon of its size does")
