"""N-best lists of several systems as one list, whose columns mean the same in every row.

Reranking the hypotheses of a phrase-based and a neural system together (Marie and Fujita 2018) needs rows that can
be compared although each system knows only its own. Of a system ``S``, with ``S`` capitalised:

=============== =========================================================================================
its features    less the values of its first hypothesis of the sentence; of the first system under their names,
                of the others with the system's in front (``SLM0``)
``TotalS0``     its total, less that of its first hypothesis; absent where its list has no totals
``InS0``        1 where the system listed the hypothesis, else 0
``FirstS0``     1 for its first hypothesis, else 0
``RankS0``      1 / place in its list, 0 where it did not list the hypothesis
=============== =========================================================================================

To subtract the same values in every row of a sentence changes no ranking, but makes 0 mean "as good as the
system's first" everywhere. A hypothesis that the system did not list has the values of the worst that it listed, but
for those that can be computed; ``InS0`` lets tuning correct them by a constant.

A system with a gap (no list for a sentence) has zeros in all its columns there, which decides nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import SEPARATOR, phrase_of
from smt_bridge.nbest.entry import (
    NbestEntry,
    NbestList,
    check_new_names,
    is_usable,
    rounded,
    why_unusable,
)

_FIRST = "First"

Values = tuple[float, ...]
ExactValue = Callable[[str], float]  # of a hypothesis: words with single blanks


class Columns(NamedTuple):
    """The features of one system: their names in its own list, the names they get, and their numbers of values."""

    system: str
    names: tuple[str, ...]
    renamed: tuple[str, ...]
    arities: tuple[int, ...]
    totals: bool

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the columns that say what the system thought of a hypothesis as a whole."""
        return tuple(f"{kind}{_capitalised(self.system)}0" for kind in ("In", "First", "Rank"))

    @property
    def total(self) -> str:
        """The name of the column of totals."""
        return f"Total{_capitalised(self.system)}0"

    @property
    def every(self) -> tuple[str, ...]:
        """The system's columns in a merged list, in their order."""
        return (*self.renamed, *([self.total] if self.totals else []), *self.own)


def _capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]


def layout(firsts: Mapping[str, NbestEntry]) -> tuple[Columns, ...]:
    """The columns of systems, by the first entry of each; raises ValueError where two columns would share a name.

    Sparse features (``_`` in the name) are left out: they belong to one system's rows and have no value elsewhere.
    """
    columns: list[Columns] = []
    for system, entry in firsts.items():
        names = tuple(name for name in entry.features if "_" not in name)
        renamed = tuple(_capitalised(system) + name for name in names) if columns else names
        arities = tuple(len(entry.features[name]) for name in names)
        columns.append(Columns(system, names, renamed, arities, entry.total is not None))
    every = [name for part in columns for name in part.every]
    check_new_names([name for part in columns for name in (*part.own, part.total)])
    twice = sorted({name for name in every if every.count(name) > 1})
    if twice:
        raise ValueError(f"two columns would be called {twice[0]}; give the lists other names")
    return tuple(columns)


def baselines(names: Sequence[str]) -> tuple[str, ...]:
    """The columns ``FirstS0`` of the systems S of a merged list; none for a list of a single system."""
    return tuple(
        name
        for name in names
        if name.startswith(_FIRST) and {column_of(name, "In"), column_of(name, "Rank")} <= {*names}
    )


def column_of(baseline: str, kind: str) -> str:
    """The column ``InS0``, ``RankS0`` or ``TotalS0`` of the system whose baseline is ``FirstS0``."""
    return kind + baseline.removeprefix(_FIRST)


def merged(
    sentence: int,
    groups: Mapping[str, NbestList],
    columns: Sequence[Columns],
    *,
    paths: Mapping[str, str],
    exact: Mapping[str, ExactValue],
) -> list[NbestEntry]:
    """The hypotheses of one sentence: of the first system, then what is new in the next.

    ``exact`` gives values of a feature (by its new name) for any hypothesis. Raises FormatError, in the names of
    ``paths``, for an entry with other features, or other numbers of values, than the system's first one has, for a
    text that cannot be written, and for values that are too far apart for Moses' tools.
    """
    systems = [_System(part, groups.get(part.system), exact, path=paths[part.system]) for part in columns]
    hypotheses = dict.fromkeys(itertools.chain.from_iterable(system.rows for system in systems))
    return [
        _entry(sentence, text, itertools.chain.from_iterable(system.columns(text) for system in systems))
        for text in hypotheses
    ]


class _System:
    """What one system says of the hypotheses of a sentence: ``rows`` has its values of those that it listed."""

    def __init__(self, part: Columns, group: NbestList | None, exact: Mapping[str, ExactValue], *, path: str) -> None:
        self._part, self._path = part, path
        self._first = {name: (0.0,) * arity for name, arity in zip(part.renamed, part.arities, strict=True)}
        self._first |= {part.total: (0.0,)} if part.totals else {}
        self._worst, self._exact = self._first, dict[str, tuple[ExactValue, float]]()
        best = self._best_derivations(group) if group else {}
        if best:
            first, entry = next(iter(best.items()))
            self._first = self._values(entry)
            self._exact = {name: (exact[name], exact[name](_words(first))) for name in part.renamed if name in exact}
        self.rows = {text: self._centred(entry) for text, entry in best.items()}
        self._places = {text: place for place, text in enumerate(self.rows, start=1)}
        if self.rows:
            rows = list(self.rows.values())
            self._worst = min(reversed(rows), key=lambda row: row[part.total]) if part.totals else rows[-1]

    def columns(self, text: bytes) -> Iterator[tuple[str, Values]]:
        """The system's columns of a hypothesis."""
        place = self._places.get(text, 0)
        yield from (self.rows[text] if place else self._of_another(text)).items()
        own = (float(place > 0), float(place == 1), 1.0 / place if place else 0.0)
        yield from ((name, (value,)) for name, value in zip(self._part.own, own, strict=True))

    def _best_derivations(self, group: NbestList) -> dict[bytes, NbestEntry]:
        """The distinct hypotheses; of several derivations the one with the best total, then the first."""
        best: dict[bytes, NbestEntry] = {}
        for entry in group.entries:
            _check(self._part, entry, self._path)
            text = phrase_of(entry.hypothesis)  # equal for equal translations
            known = best.setdefault(text, entry)
            if self._part.totals and (entry.total or 0.0) > (known.total or 0.0):
                best[text] = entry
        return best

    def _values(self, entry: NbestEntry) -> dict[str, Values]:
        part = self._part
        values = {new: entry.features[name] for name, new in zip(part.names, part.renamed, strict=True)}
        return values | ({part.total: (entry.total or 0.0,)} if part.totals else {})

    def _centred(self, entry: NbestEntry) -> dict[str, Values]:
        """An entry's values less the first entry's."""
        values = {}
        for name, numbers in self._values(entry).items():
            values[name] = tuple(value - base for value, base in zip(numbers, self._first[name], strict=True))
            for number in values[name]:
                if not is_usable(number):
                    problem = f"{name} less that of the system's first hypothesis {why_unusable(number)}"
                    raise FormatError(self._path, problem, line=entry.line)
        return values

    def _of_another(self, text: bytes) -> dict[str, Values]:
        """The values of a hypothesis that the system did not list.

        Both sides of a difference are computed: moses_chart counts <s> and </s> in WordPenalty, and its other numbers
        may be of other words, too.
        """
        words = _words(text)
        return self._worst | {name: (value(words) - first,) for name, (value, first) in self._exact.items()}


def _words(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def side_by_side(lists: Mapping[str, Iterator[NbestList]]) -> Iterator[tuple[int, dict[str, NbestList]]]:
    """The lists of equal ids together, ids ascending; a system without a list for an id is absent there."""
    heads = {name: next(found, None) for name, found in lists.items()}
    while waiting := [group.sentence for group in heads.values() if group is not None]:
        sentence = min(waiting)
        groups = {name: group for name, group in heads.items() if group is not None and group.sentence == sentence}
        yield sentence, groups
        heads |= {name: next(lists[name], None) for name in groups}


def _check(part: Columns, entry: NbestEntry, path: str) -> None:
    """Raise FormatError for an entry that has not what the first entry of its system has."""
    expected = dict(zip(part.names, part.arities, strict=True))
    found = {name: len(values) for name, values in entry.features.items() if "_" not in name}
    for name in sorted({*found, *expected}) if found != expected else ():
        if found.get(name) != expected.get(name):
            here = counted(found.get(name, 0), "value")
            problem = f"feature {name} has {here} here and {expected.get(name, 0)} in the first line of {part.system}"
            raise FormatError(path, f"{problem}; are these two lists?", line=entry.line)
    if (entry.total is None) == part.totals:
        first = f"the first line of {part.system}"
        problem = f"this line has no total but {first} has" if part.totals else f"a total here but not in {first}"
        raise FormatError(path, f"{problem}; are these two lists?", line=entry.line)
    if SEPARATOR in entry.hypothesis:
        raise FormatError(path, "the text holds '|||', which separates fields in the output", line=entry.line)


def _entry(sentence: int, text: bytes, columns: Iterable[tuple[str, Values]]) -> NbestEntry:
    features = {name: tuple(map(rounded, values)) for name, values in columns}
    return NbestEntry(sentence, text, features, None, sentence + 1)
