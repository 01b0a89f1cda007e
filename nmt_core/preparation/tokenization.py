"""Text to words as Moses cuts them, and back."""

from __future__ import annotations

from nmt_core.config import Config
from nmt_core.text.processing import TextConfig, TextProcessor


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
