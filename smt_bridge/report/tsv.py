"""Tables for papers: cells between tabs, a line each."""

from __future__ import annotations

from collections.abc import Sequence


def tsv(rows: Sequence[Sequence[str]]) -> str:
    """The lines; a tab within a cell becomes a blank."""
    return "".join("\t".join(cell.replace("\t", " ") for cell in row) + "\n" for row in rows)
