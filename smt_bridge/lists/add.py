"""The work of `smt-bridge add-features`: several lists as one, and scores as new columns."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import read_lines, readable_again
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.run import Job, are_files, run_with_options
from smt_bridge.errors import FormatError
from smt_bridge.features.registry import compares_hypotheses
from smt_bridge.lists.worker import FACTORS, NAME, FeatureWorker, Request, UnknownWords, feature_specs, models_of
from smt_bridge.metadata import Metadata, known_columns, new_metadata, write_metadata
from smt_bridge.models import count_jobs
from smt_bridge.moses_lines import look_factored, parse_factors
from smt_bridge.nbest.checks import SourceCheck
from smt_bridge.nbest.entry import NbestEntry, NbestList, format_entry, runs_of_sentence
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.merged_files import MergedFiles, ReadableFile
from smt_bridge.nbest.moses import clean_words
from smt_bridge.nbest.order import undivided

WINDOW = 100  # sentences that are scored together: a shard of the work
_OPTIONS = (
    "source", "scorer", "reverse_scorer", "lm", "feature", "factor", "names", "dtype", "softmax",
)  # fmt: skip


class _Input(NamedTuple):
    """The list, or several as one: how it is read, how its metadata are, and which files it is in.

    ``files`` says of each where it can be read.
    """

    read: Callable[[], Iterator[NbestList]]
    known_columns: Callable[[], Mapping[str, str]]
    files: Mapping[str, str]


def add_features(args: argparse.Namespace) -> int:
    """Merge the lists, where there are several, and add the columns; then write down what they are."""
    named = list(args.nbest)
    several = len(named) > 1 or bool(named[0][0])
    if several:
        _check_named(args, named)
    elif args.exact:
        raise ConfigError("--exact is for several lists: give --nbest NAME=FILE")
    elif args.source == named[0][1] == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    shown = " and ".join(path for _, path in named)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(readable_again(args.source))  # each worker reads it
        if several:
            request = Request(args, shown, tuple(f"{name}={path}" for name, path in named), source)
            lists = {name: ReadableFile(path, stack.enter_context(readable_again(path))) for name, path in named}
            return _add(request, _several(request, lists))
        request = Request(args, shown, (), source)
        return _add(request, _one(request))


def _check_named(args: argparse.Namespace, named: Sequence[tuple[str, str]]) -> None:
    """Raise ConfigError where several lists cannot be read as one."""
    unnamed = next((path for name, path in named if not name), None)
    if unnamed is not None:
        raise ConfigError(f"--nbest {unnamed}: of several lists each needs a name of letters and digits, NAME=FILE")
    if args.nbest_format != "auto":
        raise ConfigError("--nbest-format is for a single list: of several lists each is known by its first lines")
    if len({name.lower() for name, _ in named}) < len(named):
        raise ConfigError("names of lists must differ in more than capital letters; lists of one system go in one file")


def _several(request: Request, lists: Mapping[str, ReadableFile]) -> _Input:
    merged = MergedFiles(
        lists, ReadableFile(request.args.source, request.source_text), exact=request.args.exact, say=_remark
    )
    return _Input(merged.read, merged.signatures, dict(lists.values()))


def _one(request: Request) -> _Input:
    """Its lists are undivided where a feature compares the hypotheses of a sentence, or reading raises FormatError."""
    format = _format(request)
    comparing = next(filter(compares_hypotheses, request.args.feature), None)

    def read() -> Iterator[NbestList]:
        lists = runs_of_sentence(read_entries(request.nbest, format=format))
        return lists if comparing is None else undivided(lists, path=request.nbest, needed_by=comparing)

    return _Input(read, functools.partial(known_columns, request.nbest), {request.nbest: request.nbest})


def _add(request: Request, lists: _Input) -> int:
    """Add the columns, and write their metadata where the output is a file."""
    metadata_file = new_metadata(request.args.output)
    known = lists.known_columns() if metadata_file else {}
    jobs = count_jobs(request.args, models_of(feature_specs(request)))
    unknown = UnknownWords(_remark)

    def describe(counts: Mapping[str, float], signatures: Mapping[str, str]) -> None:
        unknown.finish()
        if metadata_file:
            _write_list_metadata(request, {**known, **signatures}, counts)

    source = read_lines(request.source_text, shown=request.args.source)
    next(source, None)  # warnings about the start of the file come now
    job = _job(request, lists)
    if job.journaled:
        next(_windows(request, lists.read), None)  # a bad list leaves no job behind
    open_features = functools.partial(FeatureWorker, request)
    shown: dict[str, Any] = {"name": NAME, "unit": " hyp", "quiet": request.args.quiet}
    run_with_options(request.args, job, open_features, jobs=jobs, seen=unknown.add, on_complete=describe, **shown)
    return 0


def _remark(text: str) -> None:
    say(f"{NAME}: {text}")


def _path_of(files: Mapping[str, str]) -> str:
    """The input that decides whether a job can be resumed: one that is no regular file, if there is such."""
    return next((path for path in files if not os.path.isfile(path)), next(iter(files)))


def _windows(request: Request, read: Callable[[], Iterator[NbestList]]) -> Iterator[list[NbestList]]:
    """The list, so many sentences at a time; refused where its words have factors and nobody says which one counts."""
    chosen = request.args.factor is not None or request.args.nbest_format.lower().startswith("factors")
    for number, window in enumerate(_batched(read())):
        if number == 0 and not chosen and look_factored(_texts_of_moses(window)):
            line = window[0].entries[0].line
            raise FormatError(request.nbest, FACTORS.format("models of targets do"), line=line)
        if number == 0 and not request.lists:  # several lists are looked at when all of them are read
            _warn_of_another_source(request, window)
        yield window


def _texts_of_moses(window: Sequence[NbestList]) -> Iterator[bytes]:
    """The texts of lines of Moses, which may have factors."""
    originals = (entry.original for group in window for entry in group.entries)
    return (clean_words(one.fields[1]) for one in originals if one is not None)


def _warn_of_another_source(request: Request, window: Sequence[NbestList]) -> None:
    """Say, before hours of scoring, where the first lists are not translations of the lines of the source."""
    firsts = {group.sentence: group.entries[0] for group in window}
    check = SourceCheck(request.nbest, request.args.source)
    source = read_lines(request.source_text, shown=request.args.source, as_it_is=True)  # its remarks were made
    for number, line in enumerate(itertools.islice(source, max(firsts) + 1)):
        if number in firsts:
            check.see(line, firsts[number])
    for text in check.remarks():
        _remark(text)


def _format(request: Request) -> str:
    """How the list is to be read: ``--factor`` is short for ``--nbest-format factors:N``."""
    if request.args.factor is None:
        return str(request.args.nbest_format)
    if request.args.nbest_format != "auto":
        raise ConfigError("--factor reads lists of Moses: leave out --nbest-format")
    return f"factors:{parse_factors(request.args.factor).target}"


def _job(request: Request, lists: _Input) -> Job:
    description = {"input": request.nbest, "options": _given(request) | {"nbest_format": request.args.nbest_format}}
    path = _path_of(lists.files)
    journaled = are_files(path, [request.args.output])  # and its beginning was looked at

    def shards() -> Iterator[tuple[Shard, list[NbestList]]]:
        for window in _batched(lists.read()) if journaled else _windows(request, lists.read):
            yield _shard_of(window), window

    models = {path: path for one in request.args.exact if (path := one.partition("=")[2])}
    hashed = {**lists.files, request.args.source: request.source_text, **models}
    return Job(path, shards, (request.args.output,), description, hashed, journaled)


def _batched(lists: Iterator[NbestList]) -> Iterator[list[NbestList]]:
    """So many lists at a time."""
    while window := list(itertools.islice(lists, WINDOW)):
        yield window


def _shard_of(lists: Sequence[NbestList]) -> Shard:
    """By the lines; of entries that were made by the words and the numbers, whose text takes ten times as long."""
    entries = [entry for group in lists for entry in group.entries]
    made = [entry.features for entry in entries if entry.original is None]
    numbers = array("d", (value for features in made for values in features.values() for value in values))
    names = " ".join(made[0] if made else ()).encode("utf-8", "surrogateescape")
    lines = (_words_of(entry) if entry.original is None else format_entry(entry) for entry in entries)
    shard = Shard.of(entries[0].line, b"\n".join(lines))
    return shard._replace(crc=crc32(numbers, crc32(names, shard.crc)))


def _words_of(entry: NbestEntry) -> bytes:
    return b"%d %b" % (entry.sentence, entry.hypothesis)


def _given(request: Request) -> dict[str, Any]:
    """The options that the columns depend on."""
    return {
        name: getattr(request, name) if name == "lists" else getattr(request.args, name)
        for name in (*_OPTIONS, *(("lists", "exact") if request.lists else ()))
    }


def _write_list_metadata(request: Request, columns: dict[str, str], counts: Mapping[str, float]) -> None:
    shown = {name: int(counts.get(name, 0)) for name in ("hypotheses", "sentences")}
    source = " ".join(request.lists) or request.nbest
    write_metadata(request.args.output, Metadata(input=source, columns=columns, counts=shown, options=_given(request)))
