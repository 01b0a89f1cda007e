"""N-best lists of any dialect, read as entries and written back; what the commands use.

``nbest_entry`` says what an entry is, ``nbest_moses`` how a line in the style of Moses is understood, and
``nbest_dialects`` which other lists there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from smt_bridge.formats.nbest_dialects import AUTO, read_dialect
from smt_bridge.formats.nbest_entry import (
    SEPARATOR,
    UNLABELLED,
    NbestEntry,
    NbestList,
    check_new_names,
    format_entry,
    format_number,
    runs_of_sentence,
    with_features,
    with_total,
    words_as_text,
)
from smt_bridge.formats.nbest_moses import parse_entry, parse_id

__all__ = [
    "SEPARATOR",
    "UNLABELLED",
    "NbestEntry",
    "NbestList",
    "check_new_names",
    "format_entry",
    "format_number",
    "parse_entry",
    "parse_id",
    "read_entries",
    "runs_of_sentence",
    "with_features",
    "with_total",
    "words_as_text",
]


def read_entries(path: str, *, shown: str | None = None, dialect: str = AUTO) -> Iterator[NbestEntry]:
    """Yield the hypotheses of ``path`` (in errors called ``shown``) in the order of the file.

    ``dialect`` is a name of ``nbest_dialects``, "auto" to look at the first lines. Raises FormatError for a
    malformed line and for a file without lines.
    """
    yield from read_dialect(path, shown=shown or path, dialect=dialect)
