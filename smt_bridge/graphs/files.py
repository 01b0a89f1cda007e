"""Files of search graphs: one of all sentences, or a folder with one for each."""

from __future__ import annotations

import os
import re

from nmt_core.base.errors import InputError
from nmt_core.files import is_written_through

_NUMBERED = re.compile(r"([0-9]{1,15})(?:\.[A-Za-z0-9.]+)?")


def files_of_graphs(path: str) -> list[str]:
    """The files of graphs in a folder, or the file itself. Raises InputError for a folder without any."""
    return [file for file, _ in numbered_files(path)]


def numbered_files(path: str) -> list[tuple[str, int]]:
    """The files at ``path``, each with the sentence that it begins with where none is named in it."""
    if os.path.isdir(path):
        return [(os.path.join(path, name), sentence) for sentence, name in _numbered(path)]
    found = None if is_written_through(path) else _NUMBERED.fullmatch(os.path.basename(path))
    return [(path, int(found[1]) if found else 0)]


def _numbered(folder: str) -> list[tuple[int, str]]:
    """The files of a folder that are called after a sentence, by number."""
    found = [(int(match[1]), name) for name in os.listdir(folder) if (match := _NUMBERED.fullmatch(name))]
    if not found:
        raise InputError(folder, "has no files called after sentences, such as 0.gz; expected what moses wrote there")
    return sorted(found)
