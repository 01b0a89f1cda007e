"""``nmt-core annotate``: a parallel text in which unknown words say which source words they come from."""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, OutputFile

if TYPE_CHECKING:
    from nmt_core.text.alignment import AlignedPair
    from nmt_core.text.copying import Copying, CopyScheme
    from nmt_core.text.vocabulary import Vocabulary

_AT_A_TIME = 1000  # pairs
_SUFFIXES = (".gz", ".xz", ".zst")
_EPILOG = """\
examples:
  nmt-core annotate --scheme posunk --source train.tok.en.gz --target train.tok.fr.gz \\
      --alignment aligned.grow-diag-final-and.gz --source-vocabulary en.vocab --target-vocabulary fr.vocab \\
      --output posunk/train
  nmt-core annotate --scheme posall --source train.tok.en.gz --target train.tok.fr.gz \\
      --alignment aligned.grow-diag-final-and.gz --source-vocabulary en.vocab --target-vocabulary fr.vocab \\
      --output - | head

posunk/train.source and .target are the texts (train.source.gz and so on for --output posunk/train.gz), and
posunk/train.source.vocab and .target.vocab the vocabularies to train with, which have the tokens of the scheme right
behind <unk>; '-' writes pairs with a tab between, and no vocabularies. Train with 'copying: posunk'. Then decode and
serve write words of the text, and plain pairs can be scored (docs/unknown-words.md). 'nmt-core vocab' makes
vocabularies. Inputs are read twice: of several links of a word, the one that the text has most often is taken.
"""


class Outputs(tuple[OutputFile, ...]):
    """Source, target, and their vocabularies; or standard output alone."""

    __slots__ = ()

    @staticmethod
    def of(prefix: str) -> Outputs:
        """The files of ``--output``."""
        if prefix == "-":
            return Outputs((OutputFile("-"),))
        suffix = next((one for one in _SUFFIXES if prefix.endswith(one)), "")
        stem = prefix.removesuffix(suffix)
        names = (f"{stem}.source{suffix}", f"{stem}.target{suffix}", f"{stem}.source.vocab", f"{stem}.target.vocab")
        return Outputs(map(OutputFile, names))


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--scheme", required=True, choices=["copyable", "posall", "posunk"], help="posunk is the paper's best")
    add("--source", required=True, type=InputFile, metavar="F", help="tokenised source side of a corpus")
    add("--target", required=True, type=InputFile, metavar="F", help="its target side")
    add("--alignment", required=True, type=InputFile, metavar="F", help="its alignment, lines such as 0-0 1-2")
    add("--source-vocabulary", required=True, type=InputFile, metavar="F", help="the source words a model knows")
    add("--target-vocabulary", required=True, type=InputFile, metavar="F", help="the target words")
    add(
        "--output",
        required=True,
        type=Outputs.of,
        metavar="PREFIX",
        help="of the files to write, in a folder that is made if need be; - for pairs alone",
    )


def run(args: argparse.Namespace) -> int:
    """Count the links, and annotate."""
    from nmt_core.files import open_output, readable_again
    from nmt_core.text.copying import CopyScheme, with_tokens
    from nmt_core.text.vocabulary import Vocabulary

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


def _pairs(names: Sequence[_Named]) -> Iterator[AlignedPair]:
    """The pairs of source, target and alignment."""
    from nmt_core.base.errors import InputError
    from nmt_core.text.alignment import read_aligned

    try:
        yield from read_aligned(*(one.path for one in names))
    except InputError as error:
        name = next((one.name for one in names if one.path == error.path), error.path)
        raise InputError(name, error.problem, line=error.line) from error


def _with_links(scheme: CopyScheme, source: Vocabulary, target: Vocabulary, names: Sequence[_Named]) -> Copying:
    """The annotation that prefers what is linked most often; memory is for distinct links of words in question."""
    from nmt_core.text.copying import Copying, CopyScheme

    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for pair in _pairs(names):
        links = ((pair.source[one], pair.target[other]) for one, other in pair.points)
        counts.update(link for link in links if scheme is CopyScheme.POSALL or link[1] not in target)
    return Copying(scheme, source, target, lambda one, other: counts.get((one, other), 0))


def _write(copying: Copying, pairs: Iterator[AlignedPair], streams: Sequence[BinaryIO]) -> _Counts:
    """The text, to two files, or as lines of source, tab, target to one."""
    from nmt_core.files import write_lines
    from nmt_core.text.vocabulary import UNKNOWN

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
