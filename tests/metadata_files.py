"""Metadata of a table or list, as a command writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smt_bridge.metadata import metadata_of, metadata_path


def describe(path: str | Path, content: dict[str, Any]) -> None:
    """Write the metadata of the file at ``path``; what ``content`` lacks of a table's metadata is added."""
    usual = {"scores_before": 4, "signatures": {"scorer": "fake:<table>"}, "options": {"input": "phrase-table"}}
    Path(metadata_path(str(path))).write_bytes(metadata_of(str(path), {**usual, **content}))
