"""N-best lists in the order of their ids, whatever the order of the file.

A first quick pass looks at the ids only. Where they ascend, lists are streamed in constant memory;
where they do not, all are read, those of equal id joined, and sorted. What cannot be read twice
(standard input, a pipe) goes through a temporary file.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.formats.nbest import NbestList, read_entries, runs_of_sentence
from smt_bridge.formats.nbest_dialects import AUTO, read_dialect_ids


class OrderedLists(NamedTuple):
    """Lists with ascending ids, the highest id plus one, and whether the lists had to be sorted for this."""

    lists: Iterator[NbestList]
    sentences: int
    sorted_here: bool


@contextlib.contextmanager
def ordered_lists(path: str, *, dialect: str = AUTO) -> Iterator[OrderedLists]:
    """Open an n-best list of any dialect for reading by ascending id; raises FormatError as ``read_entries`` does."""
    with _readable_twice(path) as readable:
        sentences, ascending = _scan_ids(readable, shown=path, dialect=dialect)
        lists = runs_of_sentence(read_entries(readable, shown=path, dialect=dialect))
        yield OrderedLists(lists if ascending else iter(join_lists(lists)), sentences, not ascending)


def join_lists(lists: Iterable[NbestList]) -> list[NbestList]:
    """Lists with equal ids joined, in the order of their ids; needs memory for all of them."""
    joined: dict[int, NbestList] = {}
    for part in lists:
        joined.setdefault(part.sentence, NbestList(part.sentence, [])).entries.extend(part.entries)
    return [joined[sentence] for sentence in sorted(joined)]


def _scan_ids(path: str, *, shown: str, dialect: str) -> tuple[int, bool]:
    """The highest id plus one, and whether ids never go down."""
    highest, previous, ascending = -1, -1, True
    for sentence in read_dialect_ids(path, shown=shown, dialect=dialect):
        ascending = ascending and sentence >= previous
        previous, highest = sentence, max(highest, sentence)
    if highest < 0:
        raise FormatError(shown, "is empty; expected an n-best list")
    return highest + 1, ascending


@contextlib.contextmanager
def _readable_twice(path: str) -> Iterator[str]:
    if path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nbest-") as folder:
        copy = os.path.join(folder, "list")
        with open(copy, "wb") as stream:
            stream.writelines(line + b"\n" for line in read_lines(path))
        yield copy
