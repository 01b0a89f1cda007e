"""The lexicon that a model of annotated text carries, for the words that it copies and for those it is asked about."""

from __future__ import annotations

import functools
import gzip
import hashlib
from dataclasses import dataclass

from nmt_core.errors import ModelError
from nmt_core.small_files import check_regular
from nmt_core.text.lexicon import Lexicon, read_lexicon


@dataclass(frozen=True)
class CarriedLexicon:
    """A lexicon, and its file as it is in the folder."""

    lexicon: Lexicon
    content: bytes

    @staticmethod
    def of(lexicon: Lexicon) -> CarriedLexicon:
        """The same lexicon makes the same bytes."""
        text = "".join(f"{line}\n" for line in lexicon.lines()).encode("utf-8", "surrogateescape")
        return CarriedLexicon(lexicon, gzip.compress(text, mtime=0))

    @staticmethod
    def load(path: str, expected: str) -> CarriedLexicon:
        """Read the file of this SHA-256. Raises InputError, or ModelError where it is another."""
        check_regular(path)
        with open(path, "rb") as stream:
            content = stream.read()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ModelError(f"{path}: is not as it was saved; copy the model folder again, the whole of it")
        return CarriedLexicon(read_lexicon(path), content)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, path: str) -> None:
        """Write the file."""
        with open(path, "wb") as stream:
            stream.write(self.content)
