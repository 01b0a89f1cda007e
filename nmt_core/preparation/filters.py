"""Which lines or pairs of lines are left out, and why.

The reasons, in the order in which they are looked for, the first one counting: bytes that are not
UTF-8, characters that are no text, an empty side, too few or too many words, lengths that do not go
together, equal sides, another language, a pair that came before.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_words
from nmt_core.config import Config
from nmt_core.preparation.steps import Side, import_optional, is_junk

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


_SAMPLE = 200  # lines that are looked at for swapped sides,
_LETTERS = 20  # of at least so many characters,
_FEWEST = 10  # and so many of them,
_MOST = 0.8  # of which such a share has to be in the other language


class LanguageConfig(Config):
    """A line is dropped when another language is at least ``certainty`` probable.

    Lines of fewer than ``minimum_letters`` characters stay, for they say too little. ``candidates`` are
    languages to tell apart (two-letter codes, those of the corpus added); all known ones by default.
    """

    certainty: float = Field(default=0.9, ge=0, le=1)
    minimum_letters: int = Field(default=20, ge=0)
    candidates: tuple[str, ...] | None = None


class LanguageFilter:
    """Finds sides in another language, by py3langid (one small model for some 140 languages)."""

    def __init__(self, config: LanguageConfig, languages: Mapping[Side, str]) -> None:
        self._config = config
        self._languages = languages
        self._identifier = _open_identifier()
        wanted = {*languages.values(), *(config.candidates or ())}
        unknown = sorted(wanted - set(self._identifier.labels))
        if unknown:
            raise ConfigError(f"language identification does not know '{unknown[0]}'; leave filters.language out")
        if config.candidates is not None:
            self._identifier.set_languages(sorted(wanted))

    def wrong_side(self, lines: Sequence[str]) -> Side | None:
        """The first side in another language than its own."""
        for (side, language), line in zip(self._languages.items(), lines, strict=True):
            if len(line) >= self._config.minimum_letters:
                found, certainty = self._identifier.classify(line)
                if found != language and certainty >= self._config.certainty:
                    return side
        return None


def are_swapped(lines: Mapping[Side, Sequence[str]], languages: Mapping[Side, str]) -> bool:
    """Whether most lines of both sides are rather in the other side's language.

    Only the two languages are told apart. False where that cannot be said: py3langid is not installed or does not
    know them, the corpus is monolingual, or the lines are few or short.
    """
    if len(languages) < 2 or importlib.util.find_spec("py3langid") is None:
        return False
    identifier = _open_identifier()
    if not set(languages.values()) <= set(identifier.labels):
        return False
    identifier.set_languages(sorted(languages.values()))
    return all(_is_of_another(identifier, lines[side], language) for side, language in languages.items())


def _is_of_another(identifier: Any, lines: Sequence[str], language: str) -> bool:
    sample = [line for line in lines if len(line) >= _LETTERS][:_SAMPLE]
    others = sum(identifier.classify(line)[0] != language for line in sample)
    return len(sample) >= _FEWEST and others > _MOST * len(sample)


def _open_identifier() -> Any:
    langid = import_optional("py3langid.langid", "py3langid", "language identification")
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


Hashes = npt.NDArray[np.uint64]


def hash_of(lines: Sequence[str]) -> int:
    """Eight bytes of BLAKE2b of the sides of a pair."""
    digest = hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Seen:
    """Whether a pair came before, by 8-byte hashes of what was prepared.

    Hashes stand in sorted arrays of which each is at least twice as long as the next: 8 bytes a
    pair, 16 while arrays are merged, and a handful of binary searches to look a chunk up. Two different
    pairs among n share a hash with a probability of n^2 / 2^65: one in 370,000 for ten million.
    """

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def first_times(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of ``hashes`` are new, only the first of equal ones; all are remembered."""
        distinct, places = np.unique(hashes, return_index=True)
        new = ~np.logical_or.reduce([np.zeros(len(distinct), bool), *(_are_in(run, distinct) for run in self._runs)])
        self._add(distinct[new])
        first = np.zeros(len(hashes), bool)
        first[places[new]] = True
        return first

    def _add(self, run: Hashes) -> None:
        """Merge the new run with all that are less than twice as long."""
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")
        if len(run):
            self._runs.append(run)


def _are_in(run: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(run, wanted)
    return np.equal(run[np.minimum(places, len(run) - 1)], wanted)
