"""Lists of several systems in files, read side by side as one list (``smt_bridge.nbest.merge``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.files import read_lines
from smt_bridge.metadata import known_columns, signature_of
from smt_bridge.nbest.checks import SourceCheck, beyond
from smt_bridge.nbest.entry import NbestList
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.merge import layout, merged, side_by_side
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.recompute import exact_signatures, exact_values


class ReadableFile(NamedTuple):
    """A file's name, and where its content can be read several times."""

    path: str
    readable: str


class MergedFiles:
    """One list of several files, merged again at each reading, in constant memory.

    ``lists`` are by the names of their systems; ``exact`` is for ``exact_values``. ``say`` is called once for each
    remark. Raises ConfigError where two columns would share a name.
    """

    def __init__(
        self,
        lists: Mapping[str, ReadableFile],
        source: ReadableFile,
        *,
        exact: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._lists, self._source, self._exact = lists, source, tuple(exact)
        self._tell, self._told = say, set[str]()
        firsts = {name: next(read_entries(one.readable, shown=one.path)) for name, one in lists.items()}
        for name, first in firsts.items():
            sparse = sum("_" in feature for feature in first.features)
            if sparse:
                path = lists[name].path
                self._say(f"{path}: its {sparse} or more sparse features (with '_' in the name) are left out")
        try:
            self._columns = layout(firsts)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._functions = exact_values(exact, self._columns)

    def read(self) -> Iterator[NbestList]:
        """The merged lists by ascending ids; at their end, what looks wrong is said. Raises as ``merged``."""
        paths = {name: one.path for name, one in self._lists.items()}
        with contextlib.ExitStack() as stack:
            lists = {
                name: stack.enter_context(ordered_lists(one.readable, shown=one.path, say=self._say)).lists
                for name, one in self._lists.items()
            }
            watch = _Watch(self._source, paths)
            for sentence, groups in side_by_side(lists):
                watch.see(sentence, groups)
                entries = merged(sentence, groups, self._columns, paths=paths, exact=self._functions)
                watch.hypotheses += len(entries)
                yield NbestList(sentence, entries)
            for remark in watch.remarks():
                self._say(remark)

    def signatures(self) -> dict[str, str]:
        """What the columns depend on, as far as the metadata of the files say, in the order of the columns."""
        known: dict[str, str] = {}
        for part in self._columns:
            new = dict(zip(part.names, part.renamed, strict=True))
            found = known_columns(self._lists[part.system].path)
            known |= {new[old]: signature for old, signature in found.items() if old in new}
            known |= dict.fromkeys((*part.own, part.total), signature_of("merge"))
        known |= exact_signatures(self._exact)
        return {name: known[name] for part in self._columns for name in part.every if name in known}

    def _say(self, remark: str) -> None:
        if remark not in self._told:
            self._told.add(remark)
            self._tell(remark)


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

    def __init__(self, source: ReadableFile, paths: Mapping[str, str]) -> None:
        self._source = source.path
        self._texts = read_lines(source.readable, shown=source.path, as_it_is=True)  # its remarks were made
        self._read = self._sentences = self.hypotheses = 0
        self._systems = {name: _Seen(path, SourceCheck(path, source.path)) for name, path in paths.items()}

    def see(self, sentence: int, groups: Mapping[str, NbestList]) -> None:
        """Look at one sentence's lists. Raises FormatError for an id behind the end of the source."""
        line = self._line(sentence, groups)
        self._sentences += 1
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
                raise beyond(self._systems[name].path, sentence, self._source, self._read, line=group.entries[0].line)
            line = following
            self._read += 1
        return line

    def remarks(self) -> Iterator[str]:
        """How much there is, and what looks wrong."""
        sentences = counted(self._sentences, "sentence")
        yield f"{counted(self.hypotheses, 'hypothesis', 'hypotheses')} of {sentences}"
        escaped = any(seen.is_escaped for seen in self._systems.values())
        for seen in self._systems.values():
            if seen.gaps:
                yield f"{seen.path} has no list for {seen.gaps:,} of {sentences}"
            yield from seen.check.remarks()
            if seen.has_quotes and not seen.is_escaped and escaped:
                yield f"{seen.path} has plain quotation marks where another list has Moses' escapes (&apos;)"
