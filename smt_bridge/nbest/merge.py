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
system's first" everywhere, so that what is filled in for a hypothesis the system did not list is of the same size in
every sentence. ``Fill`` says what that is; ``InS0`` lets tuning correct it by a constant.

A system with a gap (no list for a sentence) has zeros in all its columns there, which decides nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Literal, NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import (
    SEPARATOR,
    NbestEntry,
    NbestList,
    check_new_names,
    is_usable,
    rounded,
    why_unusable,
)

_FIRST = "First"

Fill = Literal["last", "mean", "zero", "drop"]
Values = tuple[float, ...]
ExactValue = Callable[[str], float]  # of a hypothesis: words with single blanks


class System(NamedTuple):
    """One system: its name, where its lists were read (for errors), and its lists with ascending ids."""

    name: str
    path: str
    lists: Iterator[NbestList]


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


class _Row(NamedTuple):
    """What one system says of a hypothesis: its place in the list (from 1), its line, and its values by name."""

    place: int
    line: int
    values: Mapping[str, Values]


def _capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]


def layout(firsts: Sequence[tuple[str, NbestEntry]]) -> tuple[Columns, ...]:
    """The columns of systems, given as name and first entry; raises ValueError where two columns would share a name.

    Sparse features (``_`` in the name) are left out: they belong to one system's rows and have no value elsewhere. So
    is the feature of Moses' constrained decoding, which is 0 wherever a hypothesis was found.
    """
    columns = []
    for place, (system, entry) in enumerate(firsts):
        names = tuple(filter(_is_kept, entry.features))
        renamed = tuple(_capitalised(system) + name for name in names) if place else names
        arities = tuple(len(entry.features[name]) for name in names)
        columns.append(Columns(system, names, renamed, arities, entry.total is not None))
    every = [name for part in columns for name in (*part.renamed, *part.own, part.total)]
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


class Merger:
    """Merges the lists of one sentence, which have been checked (``check``).

    ``paths`` says where the lists of each system were read; ``exact`` gives values of a feature (by its new name) for
    any hypothesis. Raises FormatError for values that are too far apart for Moses' tools.
    """

    def __init__(
        self,
        columns: Sequence[Columns],
        paths: Mapping[str, str],
        *,
        fill: Fill = "last",
        exact: Mapping[str, ExactValue] | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self._paths = paths
        self._fill = fill
        self._exact = dict(exact or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a merged list, in their order."""
        return tuple(
            name for part in self._columns for name in (*(self._kept(part)), *self._kept_total(part), *part.own)
        )

    def check(self, system: str, group: NbestList, path: str) -> NbestList:
        """The list of a system, read from the file ``path``.

        Raises FormatError for an entry with other features, or other numbers of values, than the system's first one,
        and for a text that cannot be written.
        """
        part = next(part for part in self._columns if part.system == system)
        for entry in group.entries:
            _check(part, entry, path)
            if SEPARATOR in entry.hypothesis:
                problem = "the text holds '|||', which separates fields in the output"
                raise FormatError(path, problem, line=entry.line)
        return group

    def checked(self, system: System) -> System:
        """The system, each of its lists checked when it is read."""
        return system._replace(lists=(self.check(system.name, group, system.path) for group in system.lists))

    def entries(self, sentence: int, groups: Mapping[str, NbestList]) -> list[NbestEntry]:
        """The hypotheses of one sentence: those of the first system, then what is new in the next."""
        rows = {part.system: self._rows(part, groups.get(part.system)) for part in self._columns}
        hypotheses = dict.fromkeys(text for part in self._columns for text in rows[part.system])
        tables = [self._table(part, rows[part.system], list(hypotheses)) for part in self._columns]
        return [
            _entry(sentence, text, itertools.chain.from_iterable(table[text] for table in tables))
            for text in hypotheses
        ]

    def missing(self, system: str, groups: Mapping[str, NbestList]) -> list[bytes]:
        """The hypotheses of a sentence that ``system`` did not list."""
        listed = {distinct_text(entry) for entry in groups[system].entries} if system in groups else set()
        others = (entry for name, group in groups.items() if name != system for entry in group.entries)
        return list(dict.fromkeys(text for text in map(distinct_text, others) if text not in listed))

    def _kept(self, part: Columns) -> tuple[str, ...]:
        return tuple(name for name in part.renamed if self._fill != "drop" or name in self._exact)

    def _kept_total(self, part: Columns) -> tuple[str, ...]:
        return (part.total,) if part.totals and self._fill != "drop" else ()

    def _rows(self, part: Columns, group: NbestList | None) -> dict[bytes, _Row]:
        """The distinct hypotheses of a system; of several derivations the one with the best total, then the first."""
        best: dict[bytes, NbestEntry] = {}
        for entry in group.entries if group is not None else ():
            known = best.setdefault(distinct_text(entry), entry)
            if part.totals and (entry.total or 0.0) > (known.total or 0.0):
                best[distinct_text(entry)] = entry
        return {
            text: _Row(place, entry.line, _values(part, entry))
            for place, (text, entry) in enumerate(best.items(), start=1)
        }

    def _table(
        self, part: Columns, rows: Mapping[bytes, _Row], hypotheses: Sequence[bytes]
    ) -> dict[bytes, list[tuple[str, Values]]]:
        """The columns of one system for all hypotheses of a sentence."""
        zeros = {name: (0.0,) * arity for name, arity in zip(part.renamed, part.arities, strict=True)}
        zeros |= {part.total: (0.0,)} if part.totals else {}
        first = next(iter(rows.values())).values if rows else zeros
        centred = {text: self._centred(part, row, first) for text, row in rows.items()}
        filling = self._filling(part, list(centred.values())) if rows else zeros
        names = (*self._kept(part), *self._kept_total(part))
        table = {}
        for text in hypotheses:
            values = centred.get(text)
            if values is None:
                values = dict(filling) | (self._computed(part, text, first) if rows else {})
            place = rows[text].place if text in rows else 0
            own = (float(place > 0), float(place == 1), 1.0 / place if place else 0.0)
            table[text] = [(name, values[name]) for name in names] + [
                (name, (value,)) for name, value in zip(part.own, own, strict=True)
            ]
        return table

    def _centred(self, part: Columns, row: _Row, first: Mapping[str, Values]) -> dict[str, Values]:
        values = _less(row.values, first)
        for name, numbers in values.items():
            for number in numbers:
                if not is_usable(number):
                    problem = f"{name} less that of the system's first hypothesis {why_unusable(number)}"
                    raise FormatError(self._paths[part.system], problem, line=row.line)
        return values

    def _computed(self, part: Columns, text: bytes, first: Mapping[str, Values]) -> dict[str, Values]:
        words = text.decode("utf-8", "replace")
        return {name: (self._exact[name](words) - first[name][0],) for name in part.renamed if name in self._exact}

    def _filling(self, part: Columns, rows: Sequence[Mapping[str, Values]]) -> dict[str, Values]:
        """What stands for a hypothesis that the system did not list; ``rows`` are those it did, the first all zeros."""
        if self._fill == "last":
            return dict(min(reversed(rows), key=lambda row: row[part.total]) if part.totals else rows[-1])
        if self._fill == "mean":
            columns = {name: zip(*(row[name] for row in rows), strict=True) for name in rows[0]}
            return {name: tuple(fsum(values) / len(rows) for values in column) for name, column in columns.items()}
        return dict(rows[0])


def side_by_side(systems: Sequence[System]) -> Iterator[tuple[int, dict[str, NbestList]]]:
    """The lists of equal ids together, ids ascending; a system without a list for an id is absent there.

    Systems of equal names are parts of one: their entries follow one another.
    """
    heads = [(system, next(system.lists, None)) for system in systems]
    while waiting := [group.sentence for _, group in heads if group is not None]:
        sentence, groups = min(waiting), dict[str, NbestList]()
        for index, (system, group) in enumerate(heads):
            if group is None or group.sentence != sentence:
                continue
            whole = groups.setdefault(system.name, NbestList(sentence, []))
            while group is not None and group.sentence == sentence:
                whole.entries.extend(group.entries)
                group = next(system.lists, None)
            heads[index] = system, group
        yield sentence, groups


def distinct_text(entry: NbestEntry) -> bytes:
    """The words of a hypothesis, one blank between them: equal for equal translations."""
    return b" ".join(word for word in entry.hypothesis.replace(b"\t", b" ").split(b" ") if word)


def _is_kept(name: str) -> bool:
    return "_" not in name and not name.startswith("ConstrainedDecoding")


def _check(part: Columns, entry: NbestEntry, path: str) -> None:
    """Raise FormatError for an entry that has not what the first entry of its system has."""
    expected = dict(zip(part.names, part.arities, strict=True))
    found = {name: len(values) for name, values in entry.features.items() if _is_kept(name)}
    for name in sorted({*found, *expected}) if found != expected else ():
        if found.get(name) != expected.get(name):
            here = counted(found.get(name, 0), "value")
            problem = f"feature {name} has {here} here and {expected.get(name, 0)} in the first line of {part.system}"
            raise FormatError(path, f"{problem}; are these two lists?", line=entry.line)
    if (entry.total is None) == part.totals:
        first = f"the first line of {part.system}"
        problem = f"this line has no total but {first} has" if part.totals else f"a total here but not in {first}"
        raise FormatError(path, f"{problem}; are these two lists?", line=entry.line)


def _values(part: Columns, entry: NbestEntry) -> dict[str, Values]:
    values = {new: entry.features[name] for name, new in zip(part.names, part.renamed, strict=True)}
    return values | ({part.total: (entry.total or 0.0,)} if part.totals else {})


def _less(values: Mapping[str, Values], first: Mapping[str, Values]) -> dict[str, Values]:
    return {
        name: tuple(value - base for value, base in zip(numbers, first[name], strict=True))
        for name, numbers in values.items()
    }


def _entry(sentence: int, text: bytes, columns: Iterable[tuple[str, Values]]) -> NbestEntry:
    return NbestEntry(
        sentence, text, {name: tuple(map(rounded, values)) for name, values in columns}, None, sentence + 1
    )
