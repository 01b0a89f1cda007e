r"""What a step of the preparation is, and the steps that learn nothing: characters, punctuation, tokenisation.

A step makes a line of a line, and goes back as far as that goes. The order of steps is that of the fields of
``settings.PreparationConfig``. A step that learns is made from the file it learned, in the first pass too, so that
new lines get the same treatment.
"""

from __future__ import annotations

import importlib
import io
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

from nmt_core.base.errors import ConfigError, unreadable
from nmt_core.config import Config
from nmt_core.files import decode_lines
from nmt_core.text.moses_scripts import PunctuationNormalizer
from nmt_core.text.processing import TextConfig, TextProcessor

Side = Literal["source", "target"]
"""Of a corpus; a monolingual one has a target only."""


class LineStep(Protocol):
    """A change to one line that depends on nothing but the line and what was set and learned before."""

    def apply(self, line: str) -> str:
        """Towards training text."""
        ...

    def undo(self, line: str) -> str:
        """From a model's output towards text for people; the line itself where there is nothing to undo."""
        ...


class ModelFile(NamedTuple):
    """What a step learned: the bytes of its file, and the ``path`` that errors name."""

    path: str
    content: bytes

    @classmethod
    def read(cls, path: str) -> ModelFile:
        """The file there. Raises InputError."""
        try:
            with open(path, "rb") as stream:
                return cls(path, stream.read())
        except OSError as error:
            raise unreadable(path, error) from error

    def lines(self) -> Iterator[str]:
        """Its text. Raises InputError for bytes that are not UTF-8."""
        return decode_lines((line.removesuffix(b"\n") for line in io.BytesIO(self.content)), self.path)


OpenModel = Callable[[str], ModelFile]
"""Gives a step's model by the name of its file."""


def import_optional(module: str, package: str, purpose: str) -> Any:
    """A library that only some steps need, or a ConfigError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{purpose} needs {package}: pip install 'hybridmt[prepare]'") from error


NO_BREAK_SPACE = "\u00a0"
_NO_BREAK_SPACES = "\u00a0\u2007\u202f"
_WHITE = "\t\n\x0b\x0c\r\x85"
_REPLACEMENT = "\ufffd"
_LOWER_BYTES = {byte: chr(0x2000 + byte) for byte in (0x13, 0x14, 0x18, 0x19, 0x1C, 0x1D)}
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_NO_TEXT = ("Cc", "Cn", "Co", "Cs")
_SPACES = re.compile(" {2,}")


class CleanupConfig(Config):
    """Nothing to choose; ``cleanup: null`` leaves the characters alone."""


class Cleanup:
    r"""The first step: characters that are no text go, spaces are single.

    Two accidents of encoding are undone. C1 control characters are Windows-1252 that was read as Latin-1
    (U+0092 for an apostrophe), and some C0 control characters are general punctuation of which only the
    lower byte was left (U+0019 for U+2019). Other control characters, private and unassigned ones, and
    invisible marks of direction go; joiners, which some scripts need, stay.

    >>> ascii(clean("It\x19s  a \u200btest\x92\t"))
    "'It\\u2019s a test\\u2019'"
    """

    def apply(self, line: str) -> str:
        """Clean."""
        return clean(line)

    def undo(self, line: str) -> str:
        """Nothing comes back."""
        return line


class _Table(dict[int, str]):
    """What ``str.translate`` puts for each character; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = result = _cleaned(chr(code))
        return result


def clean(line: str) -> str:
    """The line without control characters, composed (NFC), with single spaces between words and none outside."""
    if not (line.isascii() and line.isprintable()):
        line = unicodedata.normalize("NFC", line.translate(_TABLE))
    return _SPACES.sub(" ", line).strip(" ")


def is_junk(line: str, *, maximum_share: float) -> bool:
    """Whether the line is no text: a NUL in it, or too large a share of control characters and the like."""
    if line.isprintable() and _REPLACEMENT not in line:
        return False
    return "\0" in line or sum(map(_is_no_text, line)) > maximum_share * len(line)


def _is_no_text(char: str) -> bool:
    return char == _REPLACEMENT or (unicodedata.category(char) in _NO_TEXT and char not in _WHITE)


def _cleaned(char: str) -> str:
    code = ord(char)
    if code in _LOWER_BYTES:
        return _LOWER_BYTES[code]
    if 0x80 <= code < 0xA0:
        return bytes([code]).decode("cp1252", "ignore")
    if char in _NO_BREAK_SPACES:
        return NO_BREAK_SPACE
    if char in _WHITE or unicodedata.category(char) in ("Zs", "Zl", "Zp"):
        return " "
    return "" if _is_no_text(char) or _INVISIBLE.match(char) else char


_TABLE = _Table()


_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\uff07", "'"))


class PunctuationConfig(Config):
    """``apostrophes``: U+2019, U+02BC and U+FF07 become U+0027; ``moses``: the rules of Moses' script follow."""

    apostrophes: bool = True
    moses: bool = True


class Punctuation:
    """One form for each apostrophe, quotation mark and dash of a language.

    A tokeniser treats U+0027 and U+2019 differently, and ``normalize-punctuation.perl`` makes a quotation
    mark of a U+2019 that has no letter on both sides (after the s of *dogs*). Apostrophes are therefore mapped
    first.
    """

    def __init__(self, config: PunctuationConfig, language: str) -> None:
        self._config = config
        self._normalizer = PunctuationNormalizer(language)

    def apply(self, line: str) -> str:
        """Normalise."""
        if self._config.apostrophes:
            line = line.translate(_APOSTROPHES)
        if self._config.moses and line:
            # The Perl script sees the line feed, and one of its rules for quotation marks needs it.
            line = self._normalizer.normalize(line + "\n")
        return line

    def undo(self, line: str) -> str:
        """Nothing comes back."""
        return line


class TokenizationConfig(Config):
    """As in ``TextConfig``."""

    aggressive_hyphens: bool = False
    escape: bool = True


class Tokenization:
    """The tokeniser and detokeniser of one language."""

    def __init__(self, config: TokenizationConfig, language: str) -> None:
        self._processor = TextProcessor(
            TextConfig(
                source_language=language, target_language=language, normalize_punctuation=False, **config.to_mapping()
            )
        )

    def apply(self, line: str) -> str:
        """Tokenise."""
        return self._processor.tokenize(line)

    def undo(self, line: str) -> str:
        """Detokenise."""
        return self._processor.detokenize(line)
