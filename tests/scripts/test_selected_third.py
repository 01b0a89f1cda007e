"""`scripts/experiments/selection/selected_third.py`: what it reads of translations of programs."""

from __future__ import annotations

import runpy
import struct
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/experiments/selection/selected_third.py"
MESSAGES = {
    "": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n>1;\n",
    "%d file\0%d files": "%d fichier\0%d fichiers",
    "%s: %d": "%s : %d",
    "Page": "Page",
    "Sa_ve as…": "_Enregistrer sous…",
    "menu\x04<b>Open</b>\n  it": "<b>Ouvrir</b>",
}


def write_messages(path: Path) -> None:
    """A .mo file as gettext's manual describes it ("The Format of GNU MO Files")."""
    columns = [[text.encode() for text in texts] for texts in (MESSAGES.keys(), MESSAGES.values())]
    place = 28 + 16 * len(MESSAGES)
    table, content = b"", b""
    for text in (text for column in columns for text in column):
        table += struct.pack("<II", len(text), place + len(content))
        content += text + b"\0"
    path.write_bytes(
        struct.pack("<7I", 0x950412DE, 0, len(MESSAGES), 28, 28 + 8 * len(MESSAGES), 0, 0) + table + content
    )


def test_messages_that_were_translated_are_read(tmp_path: Path) -> None:
    (tmp_path / "fr").mkdir()
    write_messages(tmp_path / "fr" / "program.mo")
    assert list(runpy.run_path(str(SCRIPT))["messages"](tmp_path)) == [
        ("%d file", "%d fichier"),
        ("Save as…", "Enregistrer sous…"),
        ("Open it", "Ouvrir"),
    ]
