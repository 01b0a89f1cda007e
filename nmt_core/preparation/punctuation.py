"""One form for each apostrophe, quotation mark and dash.

A tokeniser treats U+0027 and U+2019 differently, and ``normalize-punctuation.perl`` makes a quotation
mark of a U+2019 that has no letter on both sides (after the s of *dogs*). Apostrophes are therefore mapped
first.
"""

from __future__ import annotations

from nmt_core.config import Config
from nmt_core.text.moses_scripts import PunctuationNormalizer

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\uff07", "'"))


class PunctuationConfig(Config):
    """``apostrophes``: U+2019, U+02BC and U+FF07 become U+0027; ``moses``: the rules of Moses' script follow."""

    apostrophes: bool = True
    moses: bool = True


class Punctuation:
    """Both rules for one language."""

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
