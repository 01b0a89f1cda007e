"""N-best lists in the order of their ids, whatever the order of the file.

A first quick pass looks at the ids only. Where they ascend, lists are streamed in constant memory;
where they do not, all are read, those of equal id joined, and sorted. What cannot be read twice
(standard input, a pipe) goes through a temporary file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from nmt_core.files import readable_again
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import NbestList, runs_of_sentence
from smt_bridge.nbest.formats import AUTO, read_entries, read_ids


class OrderedLists(NamedTuple):
    """Lists with ascending ids, the highest id plus one, and how many ids below that have no list."""

    lists: Iterator[NbestList]
    sentences: int
    missing: int


@contextlib.contextmanager
def ordered_lists(
    path: str, *, shown: str | None = None, format: str = AUTO, say: Callable[[str], None] = lambda _: None
) -> Iterator[OrderedLists]:
    """Open an n-best list of any format for reading by ascending id, in errors called ``shown``.

    ``say`` is called where it has to be sorted. Raises FormatError as ``read_entries`` does.
    """
    shown = shown or path
    with readable_again(path) as readable:
        sentences, runs, ascending = _scan_ids(readable, shown=shown, format=format)
        lists = runs_of_sentence(read_entries(readable, shown=shown, format=format))
        lists = _as_scanned(lists, sentences, ascending=ascending, shown=shown)
        if ascending:
            yield OrderedLists(lists, sentences, sentences - runs)
            return
        joined = join_lists(lists)
        say(f"{shown} is not grouped by id: lines of the same id were put together")
        yield OrderedLists(iter(joined), sentences, sentences - len(joined))


def _as_scanned(lists: Iterable[NbestList], sentences: int, *, ascending: bool, shown: str) -> Iterator[NbestList]:
    """The same lists. Raises FormatError where their ids are not those that were found before."""
    problem = "changed while it was read; wait until it is complete, and begin again"
    highest = -1
    for group in lists:
        if group.sentence >= sentences or (ascending and group.sentence <= highest):
            raise FormatError(shown, problem, line=group.entries[0].line)
        highest = max(highest, group.sentence)
        yield group
    if highest + 1 != sentences:
        raise FormatError(shown, problem)


def fill_gaps(lists: Iterable[NbestList], sentences: int) -> Iterator[NbestList]:
    """Put an empty list where an id below ``sentences`` has none, so that lists and lines run side by side."""
    expected = 0
    for group in lists:
        yield from (NbestList(sentence, []) for sentence in range(expected, group.sentence))
        yield group
        expected = group.sentence + 1
    yield from (NbestList(sentence, []) for sentence in range(expected, sentences))


def join_lists(lists: Iterable[NbestList]) -> list[NbestList]:
    """Lists with equal ids joined, in the order of their ids; needs memory for all of them."""
    joined: dict[int, NbestList] = {}
    for part in lists:
        joined.setdefault(part.sentence, NbestList(part.sentence, [])).entries.extend(part.entries)
    return [joined[sentence] for sentence in sorted(joined)]


def undivided(lists: Iterable[NbestList], *, path: str, needed_by: str) -> Iterator[NbestList]:
    """The same lists, in any order. Raises FormatError where an id comes again; ``needed_by`` says for whom."""
    seen: set[int] = set()
    for group in lists:
        if group.sentence in seen:
            problem = f"id {group.sentence} comes again, but {needed_by} needs the lines of a sentence together"
            raise FormatError(path, f"{problem}; sort them by id", line=group.entries[0].line)
        seen.add(group.sentence)
        yield group


def _scan_ids(path: str, *, shown: str, format: str) -> tuple[int, int, bool]:
    """The highest id plus one, how often another id follows, and whether ids never go down."""
    highest, previous, runs, ascending = -1, -1, 0, True
    for sentence in read_ids(path, shown=shown, format=format):
        ascending = ascending and sentence >= previous
        runs += sentence != previous
        previous, highest = sentence, max(highest, sentence)
    if highest < 0:
        raise FormatError(shown, "is empty; expected an n-best list")
    return highest + 1, runs, ascending
