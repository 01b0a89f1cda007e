"""``nmt-core annotate``: a parallel text in which unknown words say which source words they come from."""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, readable_again, write_lines
from nmt_core.text.alignment import LinkedPair, read_aligned
from nmt_core.text.copying import Copying, CopyScheme, with_tokens
from nmt_core.text.vocabulary import UNKNOWN, Vocabulary

_AT_A_TIME = 1000  # pairs


class _Counts(NamedTuple):
    """Pairs, target words, unknown ones among them, and those of these with a token that says a place."""

    pairs: int
    words: int
    unknown: int
    placed: int


class _Named(NamedTuple):
    """A file that can be read again, and the name that the user gave."""

    path: str
    name: str


def annotate(args: argparse.Namespace) -> int:
    """Count the links, and annotate."""
    files = [args.source, args.target, args.alignment]
    scheme = CopyScheme(args.scheme)
    source, target = Vocabulary.load(args.source_vocabulary), Vocabulary.load(args.target_vocabulary)
    source, target = with_tokens(source, scheme.source_tokens), with_tokens(target, scheme.target_tokens)
    with contextlib.ExitStack() as stack:
        names = [_Named(stack.enter_context(readable_again(path)), path) for path in files]
        copying = _with_links(scheme, source, target, names)
        streams = [stack.enter_context(open_output(path)) for path in args.output[:2]]
        counts = _write(copying, _pairs(names), streams)
        for vocabulary, path in zip((source, target), args.output[2:], strict=False):
            vocabulary.save(path)
    placed = f"{counts.placed:,} of {counted(counts.unknown, 'unknown target word')} with a source word"
    say(f"{counted(counts.pairs, 'pair')}, {counted(counts.words, 'target word')}; {placed}")
    return 0


def _pairs(names: Sequence[_Named]) -> Iterator[LinkedPair]:
    """The pairs of source, target and alignment."""
    try:
        yield from read_aligned(*(one.path for one in names))
    except InputError as error:
        name = next((one.name for one in names if one.path == error.path), error.path)
        raise InputError(name, error.problem, line=error.line) from error


def _with_links(scheme: CopyScheme, source: Vocabulary, target: Vocabulary, names: Sequence[_Named]) -> Copying:
    """The annotation that prefers what is linked most often; memory is for distinct links of words in question."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for pair in _pairs(names):
        links = ((pair.source[one], pair.target[other]) for one, other in pair.points)
        counts.update(link for link in links if scheme is CopyScheme.POSALL or link[1] not in target)
    return Copying(scheme, source, target, lambda one, other: counts.get((one, other), 0))


def _write(copying: Copying, pairs: Iterator[LinkedPair], streams: Sequence[BinaryIO]) -> _Counts:
    """The text, to two files, or as lines of source, tab, target to one."""
    number = words = unknown = placed = 0
    nowhere = copying.scheme.token(None)
    while part := list(itertools.islice(pairs, _AT_A_TIME)):
        sides = [
            (" ".join(copying.read_source(pair.source)), copying.read_target(pair.source, pair.target, pair.points))
            for pair in part
        ]
        lines = [(source, " ".join(target)) for source, target in sides]
        if len(streams) == 1:
            write_lines(streams[0], ["\t".join(line) for line in lines])
        else:
            for stream, side in zip(streams, zip(*lines, strict=True), strict=True):
                write_lines(stream, side)
        number += len(part)
        words += sum(len(pair.target) for pair in part)
        for pair, (_, annotated) in zip(part, sides, strict=True):
            tokens = annotated[1::2] if copying.scheme.tokens_of_a_word == 2 else annotated
            of_unknown = [token for word, token in zip(pair.target, tokens, strict=True) if word not in copying.target]
            unknown += len(of_unknown)
            placed += sum(token not in (nowhere, UNKNOWN) for token in of_unknown)
    return _Counts(number, words, unknown, placed)
