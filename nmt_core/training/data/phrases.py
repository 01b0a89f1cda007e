"""The distinct phrase pairs of a phrase table, for training on them.

Each pair counts once, whatever its frequency (Cho et al. 2014, section 3.1). Only the first two
fields of a line are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from nmt_core.base.errors import InputError
from nmt_core.files import read_text_lines


def read_phrase_pairs(path: str) -> Iterator[tuple[int, str, str]]:
    """Yield (number of the line, source, target) of every pair once. Raises InputError for a line without ``|||``.

    Pairs of one source stand together in a table, so only those of the current source are remembered.
    """
    current, seen = None, set[str]()
    for number, line in enumerate(read_text_lines(path, errors="replace"), start=1):
        source, bar, rest = line.partition("|||")
        if not bar:
            raise InputError(path, "expected 'source ||| target ||| scores'", line=number)
        target = rest.partition("|||")[0].strip(" ")
        if source != current:
            current, seen = source, set()
        if target not in seen:
            seen.add(target)
            yield number, source.strip(" "), target
