"""The first step: characters that are no text go, spaces are single."""

from __future__ import annotations

from nmt_core.config import Config
from nmt_core.preparation.characters import clean


class CleanupConfig(Config):
    """Nothing to choose; ``cleanup: null`` leaves the characters alone."""


class Cleanup:
    """See ``characters``."""

    def apply(self, line: str) -> str:
        """Clean."""
        return clean(line)

    def undo(self, line: str) -> str:
        """Nothing comes back."""
        return line
