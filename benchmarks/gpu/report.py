"""A report that is complete after every row: Markdown for readers, JSON for programs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]  # by column; "ok" says whether it is as it must be, where that is known


@dataclass
class Table:
    """One section of the report."""

    name: str
    about: str
    rows: list[Row] = field(default_factory=list)
    state: str = "running"
    seconds: float = 0.0

    @property
    def columns(self) -> list[str]:
        """All keys of its rows, in the order in which they came."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def markdown(self) -> str:
        """The section as Markdown."""
        head = f"## {self.name}: {self.state}, {self.seconds:.0f} s\n\n{' '.join(self.about.split())}\n\n"
        lines = [self.columns, ["---"] * len(self.columns)] if self.rows else []
        lines += [[_cell(row.get(column)) for column in self.columns] for row in self.rows]
        return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


class Report:
    """All sections so far, and the directory that they are written to."""

    def __init__(self, directory: Path, title: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.title = directory, title
        self.tables: list[Table] = []

    @property
    def wrong(self) -> list[Row]:
        """The rows that are not as they must be."""
        return [row for table in self.tables for row in table.rows if row.get("ok") is False]

    def write(self) -> None:
        """Replace both files."""
        tables = "\n".join(table.markdown() for table in self.tables)
        whole = {"title": self.title, "wrong": len(self.wrong), "sections": [asdict(table) for table in self.tables]}
        self._replace("report.md", f"# {self.title}\n\nRows that are wrong: {len(self.wrong)}.\n\n{tables}")
        self._replace("report.json", json.dumps(whole, indent=1) + "\n")

    def _replace(self, name: str, text: str) -> None:
        temporary = self.directory / f".{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.directory / name)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**NO**"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value).replace("|", "\\|").replace("\n", " ")
