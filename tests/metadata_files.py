"""Metadata of a table or list, as a command writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmt_core.files.reading import json_bytes
from smt_bridge.metadata import identity, metadata_path


def metadata_of(path: str, content: dict[str, Any]) -> bytes:
    """The metadata of the bytes that the file ``path`` has."""
    return json_bytes({**content, "file": identity(path)}, indent=2)


def describe(path: str | Path, content: dict[str, Any]) -> None:
    """Write the metadata of a table at ``path``: ``content``, where ``added`` names the columns, and what it lacks."""
    given = dict(content)
    columns = dict.fromkeys(given.pop("added"), given.get("signatures", {}).get("scorer", "fake:<table>"))
    usual = {"input": "phrase-table", "version": "0.1.0", "columns": columns, "counts": {}, "options": {}}
    usual |= {"scores_before": 4, "signatures": {"scorer": "fake:<table>"}}
    Path(metadata_path(str(path))).write_bytes(metadata_of(str(path), {**usual, **given}))
