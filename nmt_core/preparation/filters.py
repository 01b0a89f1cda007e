"""Which lines or pairs of lines are left out, and why.

The reasons, in the order in which they are looked for, the first one counting: bytes that are not
UTF-8, characters that are no text, an empty side, too few or too many words, lengths that do not go
together, equal sides, another language, a pair that came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from nmt_core.config import Config
from nmt_core.preparation.characters import is_junk
from nmt_core.preparation.language import LanguageConfig, LanguageFilter
from nmt_core.preparation.steps import Side
from nmt_core.text.vocabulary import split_words

NOT_UTF8 = "not UTF-8"
NO_TEXT = "characters that are no text"
JUNK = (NOT_UTF8, NO_TEXT)
DUPLICATE = "duplicate"


class JunkConfig(Config):
    """``maximum_share`` of the characters of a line may be no text.

    A file of which more than ``maximum_lines`` (a share) are junk is refused: it has another encoding.
    """

    maximum_share: float = Field(default=0.1, ge=0, le=1)
    maximum_lines: float = Field(default=0.1, ge=0, le=1)


class FiltersConfig(Config):
    """Lengths count words after tokenisation, before subwords.

    A pair goes when its longer side has more than ``maximum_ratio`` x shorter + ``ratio_slack`` words, the
    rule of the WMT'15 system. ``null`` turns a filter off.
    """

    junk: JunkConfig = JunkConfig()
    minimum_words: int = Field(default=1, ge=0)
    maximum_words: int | None = Field(default=100, ge=1)
    maximum_ratio: float | None = Field(default=2.0, ge=1)
    ratio_slack: int = Field(default=10, ge=0)
    identical: bool = False
    language: LanguageConfig | None = None
    duplicates: bool = False


class Reason(NamedTuple):
    """Why something was dropped, and which side it was for (None for both together)."""

    text: str
    side: Side | None


class Filters:
    """All filters but that for duplicates, for the sides of a corpus."""

    def __init__(self, config: FiltersConfig, languages: Mapping[Side, str]) -> None:
        self._config = config
        self._sides = tuple(languages)
        self._languages = None if config.language is None else LanguageFilter(config.language, languages)

    def decode(self, raw: Sequence[bytes]) -> list[str] | Reason:
        """The text of the sides, unless one is none."""
        found: list[str] = []
        for side, line in zip(self._sides, raw, strict=True):
            try:
                text = line.decode().removesuffix("\r")
            except UnicodeDecodeError:
                return Reason(NOT_UTF8, side)
            if is_junk(text, maximum_share=self._config.junk.maximum_share):
                return Reason(NO_TEXT, side)
            found.append(text)
        return found

    def judge(self, raw: Sequence[str], prepared: Sequence[str]) -> Reason | None:
        """Why the pair is to go, if it is; ``raw`` is its text before the steps."""
        lengths = [len(split_words(line)) for line in prepared]
        return self._by_length(lengths) or self._by_ratio(lengths) or self._by_content(raw, prepared)

    def _by_length(self, lengths: Sequence[int]) -> Reason | None:
        least, most = self._config.minimum_words, self._config.maximum_words
        for side, length in zip(self._sides, lengths, strict=True):
            if length < least:
                return Reason("too short" if length else "empty", side)
            if most is not None and length > most:
                return Reason("too long", side)
        return None

    def _by_ratio(self, lengths: Sequence[int]) -> Reason | None:
        ratio = self._config.maximum_ratio
        if ratio is None or max(lengths) <= ratio * min(lengths) + self._config.ratio_slack:
            return None
        return Reason("length ratio", None)

    def _by_content(self, raw: Sequence[str], prepared: Sequence[str]) -> Reason | None:
        if self._config.identical and len(prepared) > 1 and prepared[0] == prepared[1]:
            return Reason("identical sides", None)
        if self._languages is not None:
            side = self._languages.wrong_side(raw)
            return None if side is None else Reason("another language", side)
        return None
