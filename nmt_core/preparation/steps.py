"""What a step is: a line in, a line out, and back as far as that goes.

The order is that of the fields of ``settings.PreparationConfig``. A step that learns is made from the
file it learned, in the first pass too, so that a replay cannot differ from it.
"""

from __future__ import annotations

from typing import Protocol


class LineStep(Protocol):
    """A change to one line that depends on nothing but the line and what was set and learned before."""

    def apply(self, line: str) -> str:
        """Towards training text."""
        ...

    def undo(self, line: str) -> str:
        """From a model's output towards text for people; the line itself where there is nothing to undo."""
        ...
