"""Lists of several systems in files, read side by side as one list (``smt_bridge.nbest.merge``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.files import open_output, read_lines
from smt_bridge.metadata import Signature, known_columns
from smt_bridge.nbest.checks import SourceCheck, beyond
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.merge import Columns, Fill, Merger, System, distinct_text, layout, side_by_side
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.recompute import exact_signatures, exact_values

_NO_TEXT = b"<none>"  # Moses takes an empty text for a line without an id


class NamedList(NamedTuple):
    """A system's name, its file, and where the file's content can be read several times."""

    system: str
    path: str
    readable: str


class Source(NamedTuple):
    """The source text: its name, and where it can be read several times."""

    path: str
    readable: str


class MergedFiles:
    """One list of several files, merged again at each reading, in constant memory.

    ``fill`` and ``exact`` are those of ``Merger`` and ``exact_values``. ``say`` is called once for each remark. Raises
    ConfigError where two columns would share a name.
    """

    def __init__(
        self,
        lists: Sequence[NamedList],
        source: Source,
        *,
        fill: Fill,
        exact: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._lists, self._source = tuple(lists), source
        self._fill: Fill = fill
        self._exact = tuple(exact)
        self._tell, self._told = say, set[str]()
        firsts: dict[str, NbestEntry] = {}
        for one in lists:
            first = next(read_entries(one.readable, shown=one.path))
            firsts.setdefault(one.system, first)
            sparse = sum("_" in name for name in first.features)
            if sparse:
                self._say(f"{one.path}: its {sparse} or more sparse features (with '_' in the name) are left out")
        try:
            self._columns = layout(list(firsts.items()))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        paths = {name: " and ".join(one.path for one in lists if one.system == name) for name in firsts}
        self._merger = Merger(self._columns, paths, fill=fill, exact=exact_values(exact, self._columns))

    def read(self) -> Iterator[NbestList]:
        """The merged lists by ascending ids; at their end, what looks wrong is said. Raises as ``Merger`` does."""
        with self._opened() as sentences:
            watch = _Watch(self._source, {one.system: one.path for one in reversed(self._lists)}, self._columns)
            for sentence, groups in sentences:
                watch.see(sentence, groups)
                yield NbestList(sentence, self._merger.entries(sentence, groups))
            for remark in watch.remarks():
                self._say(remark)

    def write_constraints(self, paths: Mapping[str, str]) -> None:
        """Write for each system ``id TAB text`` of what its list lacks, for Moses' constrained decoding.

        Moses needs a line for every id. Raises ConfigError for a system without a list.
        """
        with contextlib.ExitStack() as stack:
            sentences = stack.enter_context(self._opened())
            files = {name: stack.enter_context(open_output(path)) for name, path in paths.items()}
            expected = 0
            for sentence, groups in sentences:
                for name, stream in files.items():
                    _write_placeholders(stream, range(expected, sentence))
                    _write_missing(stream, sentence, self._merger, name, groups)
                expected = sentence + 1
            lines = sum(1 for _ in read_lines(self._source.readable, shown=self._source.path, as_it_is=True))
            for stream in files.values():
                _write_placeholders(stream, range(expected, lines))

    def signatures(self) -> dict[str, Signature]:
        """What the columns depend on, as far as the metadata of the files say, in the order of the columns."""
        parts = {part.system: part for part in self._columns}
        known: dict[str, Signature] = {}
        for one in reversed(self._lists):
            new = dict(zip(parts[one.system].names, parts[one.system].renamed, strict=True))
            known |= {new[old]: found for old, found in known_columns(one.path).items() if old in new}
        merged = Signature.of("merge", fill=self._fill)
        known |= {name: merged for part in self._columns for name in (*part.own, part.total)}
        known |= exact_signatures(self._exact)
        return {name: known[name] for name in self._merger.names if name in known}

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Iterator[tuple[int, dict[str, NbestList]]]]:
        with contextlib.ExitStack() as stack:
            systems = []
            for one in self._lists:
                ordered = stack.enter_context(ordered_lists(one.readable, shown=one.path))
                systems.append(self._merger.checked(System(one.system, one.path, ordered.lists)))
                if ordered.sorted_here:
                    self._say(f"{one.path} is not grouped by id: lines of the same id were put together")
            yield side_by_side(systems)

    def _say(self, remark: str) -> None:
        if remark not in self._told:
            self._told.add(remark)
            self._tell(remark)


def check_names(systems: Sequence[str], constrained: Sequence[str]) -> None:
    """Raise ConfigError for names that differ in capitals alone, and for constraints of a system without a list."""
    names = set(systems)
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError("names of lists must differ in more than capital letters")
    for name in constrained:
        if name not in names:
            raise ConfigError(f"--write-constraints {name}: there is no list of this name ({', '.join(sorted(names))})")


def _write_missing(
    stream: IO[bytes], sentence: int, merger: Merger, name: str, groups: Mapping[str, NbestList]
) -> None:
    texts = merger.missing(name, groups)
    if not texts:
        own = groups.get(name)
        texts = [distinct_text(own.entries[0])] if own is not None else []
    stream.writelines(b"%d\t%s\n" % (sentence, text or _NO_TEXT) for text in texts)


def _write_placeholders(stream: IO[bytes], sentences: Iterable[int]) -> None:
    stream.writelines(b"%d\t%s\n" % (sentence, _NO_TEXT) for sentence in sentences)


@dataclass
class _Seen:
    """What was seen of the lists of a system."""

    path: str
    check: SourceCheck
    gaps: int = 0
    is_escaped: bool = False
    has_quotes: bool = False


class _Watch:
    """Counts, and looks whether the lists belong to the source and to one another."""

    def __init__(self, source: Source, paths: Mapping[str, str], columns: Sequence[Columns]) -> None:
        self._source = source.path
        self._texts = read_lines(source.readable, shown=source.path, as_it_is=True)  # its remarks were made
        self._read = self._sentences = self._hypotheses = 0
        named = {part.system: paths[part.system] for part in columns}
        self._systems = {name: _Seen(path, SourceCheck(path, source.path)) for name, path in named.items()}

    def see(self, sentence: int, groups: Mapping[str, NbestList]) -> None:
        """Look at one sentence's lists. Raises FormatError for an id behind the end of the source."""
        line = self._line(sentence, groups)
        self._sentences += 1
        self._hypotheses += len({distinct_text(e) for group in groups.values() for e in group.entries})
        for name, seen in self._systems.items():
            if name not in groups:
                seen.gaps += 1
                continue
            first = groups[name].entries[0]
            seen.check.see(line, first)
            seen.is_escaped |= b"&apos;" in first.hypothesis or b"&quot;" in first.hypothesis
            seen.has_quotes |= b"'" in first.hypothesis or b'"' in first.hypothesis

    def _line(self, sentence: int, groups: Mapping[str, NbestList]) -> bytes:
        line = b""
        while self._read <= sentence:
            following = next(self._texts, None)
            if following is None:
                name, group = next(iter(groups.items()))
                raise beyond(self._systems[name].path, group.entries[0], self._source, self._read)
            line = following
            self._read += 1
        return line

    def remarks(self) -> Iterator[str]:
        """How much there is, and what looks wrong."""
        sentences = counted(self._sentences, "sentence")
        yield f"{counted(self._hypotheses, 'hypothesis', 'hypotheses')} of {sentences}"
        escaped = any(seen.is_escaped for seen in self._systems.values())
        for seen in self._systems.values():
            if seen.gaps:
                yield f"{seen.path} has no list for {seen.gaps:,} of {sentences}"
            yield from seen.check.remarks()
            if seen.has_quotes and not seen.is_escaped and escaped:
                yield f"{seen.path} has plain quotation marks where another list has Moses' escapes (&apos;)"
