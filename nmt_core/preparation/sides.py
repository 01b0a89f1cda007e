"""The sides of a corpus; a monolingual one has a target only."""

from __future__ import annotations

from typing import Literal

Side = Literal["source", "target"]
