"""`smt-bridge merge`: the n-best lists of several systems as one list to rerank."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, NamedInput, OutputFile
from smt_bridge.commands.file_types import RecordedInput, RecordedOutput

if TYPE_CHECKING:
    from smt_bridge.nbest.checks import SampledPair
    from smt_bridge.nbest.entry import NbestEntry, NbestList
    from smt_bridge.nbest.merge import Columns, Merger, System

NAME = "merge"
_NO_TEXT = b"<none>"  # Moses takes an empty text for a line without an id
_EXAMPLE = """example:
  nmt-core decode --model runs/search --beam 12 --nbest 12 --input test.tok.en > test.nmt.nbest
  smt-bridge merge --list moses=test.nbest100.gz --list nmt=test.nmt.nbest --source test.tok.en \\
      --exact LM0=lm.fr.arpa.gz --exact WordPenalty0 --output test.merged.gz
  smt-bridge add-features --source test.tok.en --nbest test.merged.gz --scorer runs/search --output test.rich.gz
  smt-bridge tune --nbest dev.rich.gz --reference dev.tok.fr --output weights

The hypotheses of all lists, each once; those of the first list come first. Columns are each list's features less
the values of its own best hypothesis; those of the first list keep their names, an LM0 of a list called nmt becomes
NmtLM0. Beside them stand TotalNmt0 (its total, likewise), InNmt0 (1 where it has the hypothesis), FirstNmt0 (1 for its
best) and RankNmt0 (1/place). See docs/merging.md for values that a system does not know."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    _add_files(parser)
    _add_values(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    """What is read and written."""
    parser.add_argument(
        "--list",
        action="append",
        default=[],
        dest="lists",
        required=True,
        type=_named_input,
        metavar="NAME=FILE",
        help="an n-best list of any format, with a name of letters and digits; lists of one name are one system's",
    )
    parser.add_argument(
        "--source", type=InputFile, metavar="FILE", help="tokenised source text: are these its translations?"
    )
    parser.add_argument(
        "--write-constraints",
        action="append",
        default=[],
        type=_named_output,
        metavar="NAME=FILE",
        help="also write the hypotheses that this list lacks, for Moses' constrained decoding",
    )
    parser.add_argument(
        "--output", type=RecordedOutput, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )


def _add_values(parser: argparse.ArgumentParser) -> None:
    """Values of features that a system did not give."""
    parser.add_argument(
        "--fill",
        choices=["last", "mean", "zero", "drop"],
        default="last",
        help="features of a hypothesis the system did not list: those of its last, its mean, its first's, or no"
        " features at all (last)",
    )
    parser.add_argument(
        "--exact",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME[=LM]",
        help="compute such a feature instead: WordPenalty0 from the words, LM0=FILE by KenLM; repeatable",
    )


def run(args: argparse.Namespace) -> int:
    """Merge, and write the record."""
    from smt_bridge.metadata import new_metadata, write_metadata

    _check(args.lists, dict(args.write_constraints))
    record = new_metadata(args.output)
    _merge(args, lambda content: write_metadata(args.output, content) if record is not None else None)
    return 0


def _merge(args: argparse.Namespace, finish: Callable[[dict[str, Any]], None]) -> None:
    """Walk through all lists side by side, in constant memory where they are sorted by id.

    ``finish`` is called with the metadata when the output is complete.
    """
    from nmt_core.files import open_output
    from smt_bridge.nbest.merge import System, side_by_side
    from smt_bridge.nbest.order import ordered_lists

    named, constraints = args.lists, dict(args.write_constraints)
    with contextlib.ExitStack() as stack:
        systems = []
        for name, path in named:
            ordered = stack.enter_context(ordered_lists(path))
            systems.append(System(name, path, ordered.lists))
            if ordered.sorted_here:
                _say(f"{path} is not grouped by id: lines of the same id were put together")
        merger, columns, systems = _merger(args, systems)
        watch = _Watch(args.source, dict(reversed(named)), columns)
        files = {name: stack.enter_context(open_output(path)) for name, path in constraints.items()}

        def done() -> None:
            finish(_metadata(args, columns, merger.names, watch.counts))

        output = stack.enter_context(open_output(args.output, finish=done))
        expected = 0
        for sentence, groups in side_by_side(systems):
            watch.see(sentence, groups)
            for stream in files.values():
                _write_placeholders(stream, range(expected, sentence))
            expected = sentence + 1
            output.writelines(merger.merge(sentence, groups))
            for name, stream in files.items():
                _write_constraints(stream, sentence, merger, name, groups)
        unread = watch.unread() if files else range(0)
        for stream in files.values():
            _write_placeholders(stream, unread)
        watch.report()


def _named_input(text: str) -> tuple[str, str]:
    name, path = _name_and_file(text)
    return name, RecordedInput(path)


def _named_output(text: str) -> tuple[str, str]:
    name, path = _name_and_file(text)
    return name, OutputFile(path)


def _name_and_file(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (equals and path and name.isascii() and name.isalnum() and name[0].isalpha()):
        raise argparse.ArgumentTypeError(f"expected NAME=FILE with a name of letters and digits, not '{text}'")
    return name, path


def _check(named: Sequence[tuple[str, str]], constraints: Mapping[str, str]) -> None:
    names = {name for name, _ in named}
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError("names of lists must differ in more than capital letters")
    for name in constraints:
        if name not in names:
            raise ConfigError(f"--write-constraints {name}: there is no list of this name ({', '.join(sorted(names))})")


def _merger(args: argparse.Namespace, systems: Sequence[System]) -> tuple[Merger, tuple[Columns, ...], list[System]]:
    from smt_bridge.nbest.merge import Merger, layout, peek
    from smt_bridge.nbest.recompute import exact_values

    firsts: dict[str, NbestEntry] = {}
    complete = []
    for system in systems:
        first, again = peek(system)
        firsts.setdefault(system.name, first)
        complete.append(again)
        sparse = sum("_" in name for name in first.features)
        if sparse:
            _say(f"{system.path}: its {sparse} or more sparse features (with '_' in the name) are left out")
    try:
        columns = layout(list(firsts.items()))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    paths = {name: " and ".join(one.path for one in systems if one.name == name) for name in firsts}
    merger = Merger(columns, paths, fill=args.fill, exact=exact_values(args.exact, columns))
    return merger, columns, list(map(merger.checked, complete))


def _write_constraints(
    stream: IO[bytes], sentence: int, merger: Merger, name: str, groups: Mapping[str, NbestList]
) -> None:
    """`id TAB text` of what the list lacks; Moses needs a line for every id, with or without anything missing."""
    from smt_bridge.nbest.merge import distinct_text

    texts = merger.missing(name, groups)
    if not texts:
        own = groups.get(name)
        texts = [distinct_text(own.entries[0])] if own is not None else []
    stream.writelines(b"%d\t%s\n" % (sentence, text or _NO_TEXT) for text in texts)


def _write_placeholders(stream: IO[bytes], sentences: Iterable[int]) -> None:
    stream.writelines(b"%d\t%s\n" % (sentence, _NO_TEXT) for sentence in sentences)


class _Watch:
    """Counts, and looks whether the lists belong to the source and to one another."""

    def __init__(self, source: str | None, paths: Mapping[str, str], columns: Sequence[Columns]) -> None:
        from nmt_core.files import read_lines

        self._source = source
        self._texts: Iterator[bytes] | None = read_lines(source) if source else None
        self._read = 0
        self._paths = paths
        self._samples: dict[str, list[SampledPair]] = {part.system: [] for part in columns}
        self._escaped = dict.fromkeys(self._samples, False)
        self._plain = dict.fromkeys(self._samples, False)
        self.counts: dict[str, int] = {"sentences": 0, "hypotheses": 0} | {
            f"gaps of {part.system}": 0 for part in columns
        }

    def see(self, sentence: int, groups: Mapping[str, NbestList]) -> None:
        """Look at one sentence's lists."""
        from smt_bridge.nbest.checks import MOST_LOOKED_AT, sampled_pair
        from smt_bridge.nbest.merge import distinct_text

        source = self._line(sentence, groups)
        self.counts["sentences"] += 1
        self.counts["hypotheses"] += len({distinct_text(e) for group in groups.values() for e in group.entries})
        leader = next(iter(groups.values())).entries[0]
        for name, samples in self._samples.items():
            if name not in groups:
                self.counts[f"gaps of {name}"] += 1
            elif len(samples) < MOST_LOOKED_AT:
                entry = groups[name].entries[0]
                samples.append(sampled_pair(source if source is not None else leader.hypothesis, entry))
                self._escaped[name] |= b"&apos;" in entry.hypothesis or b"&quot;" in entry.hypothesis
                self._plain[name] |= b"'" in entry.hypothesis or b'"' in entry.hypothesis

    def _line(self, sentence: int, groups: Mapping[str, NbestList]) -> bytes | None:
        from smt_bridge.errors import FormatError

        line: bytes | None = None
        while self._texts is not None and self._read <= sentence:
            line = next(self._texts, None)
            if line is None:
                name, group = next(iter(groups.items()))
                problem = (
                    f"has the id {sentence} but {self._source} has only {counted(self._read, 'line')} (ids begin at 0)"
                )
                raise FormatError(self._paths[name], problem, line=group.entries[0].line)
            self._read += 1
        return None if line is None else line.removesuffix(b"\r")

    def unread(self) -> range:
        """The ids of the source's lines behind the last list."""
        return range(self._read, self._read + sum(1 for _ in self._texts or ()))

    def report(self) -> None:
        """Say on stderr how much there is, and what looks wrong."""
        from smt_bridge.nbest.checks import looks_unrelated

        counts = self.counts
        _say(
            f"{counted(counts['hypotheses'], 'hypothesis', 'hypotheses')} of {counted(counts['sentences'], 'sentence')}"
        )
        for name, samples in self._samples.items():
            gaps = counts[f"gaps of {name}"]
            if gaps:
                _say(f"{self._paths[name]} has no list for {gaps:,} of {counted(counts['sentences'], 'sentence')}")
            reason = looks_unrelated(samples)
            other = self._source or next(iter(self._paths.values()))
            if reason is not None and other != self._paths[name]:
                _say(f"do {self._paths[name]} and {other} belong together? {reason}")
            if self._plain[name] and not self._escaped[name] and any(self._escaped.values()):
                _say(f"{self._paths[name]} has plain quotation marks where another list has Moses' escapes (&apos;)")


def _metadata(
    args: argparse.Namespace, columns: Sequence[Columns], names: Sequence[str], counts: Mapping[str, int]
) -> dict[str, Any]:
    """The record: the signatures of the columns under their new names."""
    from smt_bridge.metadata import content_of_list, known_columns
    from smt_bridge.nbest.recompute import exact_signatures
    from smt_bridge.signature import Signature

    known: dict[str, Signature] = {}
    for name, path in reversed(args.lists):
        part = next(part for part in columns if part.system == name)
        new = dict(zip(part.names, part.renamed, strict=True))
        known |= {new[old]: signature for old, signature in known_columns(path).items() if old in new}
    own = {name: Signature.of("merge", fill=args.fill) for part in columns for name in (*part.own, part.total)}
    known |= own | exact_signatures(args.exact)
    signatures = {name: known[name] for name in names if name in known}
    lists = [f"{name}={path}" for name, path in args.lists]
    options = {"lists": lists} | {name: getattr(args, name) for name in ("source", "fill", "exact")}
    return content_of_list(" ".join(lists), signatures, counts, options)


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
