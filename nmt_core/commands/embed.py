"""``nmt-core embed``: vectors of words, phrases and sentences, and which are near to which."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, BinaryIO

from nmt_core.commands.file_types import ModelFolder
from nmt_core.commands.long_lines import add_word_limit
from nmt_core.commands.model_options import add_device
from nmt_core.files import InputFile, OutputFile

if TYPE_CHECKING:
    from nmt_core.inference.neighbours import Vectors
    from nmt_core.model_directory.loaded_model import LoadedModel

NAME = "embed"

_EPILOG = """\
examples:
  nmt-core embed --model runs/en-fr --what source-words > en.vec
  nmt-core embed --model runs/en-fr --output phrases.npy phrases.tok.en
  nmt-core embed --model runs/en-fr --neighbours 10 --among phrases.tok.en queries.tok.en > near.tsv

Words are written as word2vec's text format, which training.source_embeddings reads. Phrases and sentences are lines
of INPUT as the model reads them: each with its numbers behind tabs, or, to FILE.npy, a float32 matrix. The vector of a
line is what the encoder is left with: c of an RNNencdec, the ends of both directions of an RNNsearch, the last layer of
a deep LSTM. --neighbours writes query, rank, cosine and line, tab between; the mean of the lines searched is taken off.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("--model", type=ModelFolder, required=True, metavar="DIR", help="model folder")
    parser.add_argument("input", type=InputFile, nargs="?", metavar="INPUT", help="tokenised lines, '-' for stdin")
    parser.add_argument(
        "--what", choices=["lines", "source-words", "target-words"], default="lines", help="of what (default: lines)"
    )
    parser.add_argument("--neighbours", type=int, metavar="K", help="write the K nearest lines of each line instead")
    parser.add_argument("--among", type=InputFile, metavar="F", help="the lines searched (default: INPUT itself)")
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.npy is a matrix ('-')"
    )
    add_word_limit(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Load the model and write what was asked for."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.base.messages import counted
    from nmt_core.device import choose_device
    from nmt_core.files import open_output
    from nmt_core.model_directory.loaded_model import load_model

    of_lines = args.what == "lines"
    if of_lines == (args.input is None):
        raise ConfigError("give INPUT for vectors of lines, and none for those of words")
    if args.neighbours is not None and (not of_lines or args.neighbours < 1 or args.output.endswith(".npy")):
        raise ConfigError("--neighbours needs lines, a number of at least 1, and an --output that is text")
    if args.among is not None and args.neighbours is None:
        raise ConfigError("--among goes with --neighbours")
    loaded = load_model(args.model, device=choose_device(args.device))
    if not of_lines:
        _write_words(args, loaded)
        return 0
    lines = _read(args.input, loaded, args.max_words)
    among = lines if args.among is None else _read(args.among, loaded, args.max_words)
    if args.neighbours is not None and args.neighbours > len(among):
        raise ConfigError(f"--neighbours {args.neighbours}: only {counted(len(among), 'line')} to choose from")
    _warn_of_unknown_words(loaded, lines if args.among is None else [*among, *lines])
    vectors = _vectors(loaded, lines)
    with open_output(args.output) as stream:
        if args.neighbours is not None:
            searched = vectors if args.among is None else _vectors(loaded, among)
            _write_neighbours(stream, lines, among, (vectors, searched), args.neighbours)
        elif args.output.endswith(".npy"):
            _write_matrix(stream, vectors)
        else:
            for line, vector in zip(lines, vectors, strict=True):
                stream.write(_row(line, vector, "\t"))
    return 0


def _read(path: str, loaded: LoadedModel, most_words: int) -> list[str]:
    from nmt_core.base.errors import InputError
    from nmt_core.base.words import check_factors, check_words
    from nmt_core.files import read_text_lines

    lines = list(read_text_lines(path))
    if not lines:
        raise InputError(path, "is empty; expected tokenised lines")
    for number, line in enumerate(lines, start=1):
        if "\t" in line:
            raise InputError(path, "has a tab, which is what separates the columns of the output", line=number)
        check_words(line, most_words, path=path, line=number)
        check_factors(line, len(loaded.factors), path=path, line=number)
    return lines


def _warn_of_unknown_words(loaded: LoadedModel, lines: list[str]) -> None:
    """Where many are: they all have one vector."""
    from nmt_core.base.messages import say
    from nmt_core.base.words import split_words
    from nmt_core.text.unknown_share import UnknownShare, usual_share
    from nmt_core.text.vocabulary import UNKNOWN_ID

    def warn(message: str) -> None:
        say(f"nmt-core {NAME}: warning: {message}")

    usual = usual_share([loaded.source])
    share = UnknownShare(loaded.folder, warn, hint="", serve=loaded.unknown_words_serve, usual=usual)
    for line in lines:
        share.add(words=len(split_words(line)), unknown=loaded.encode_text(line).count(UNKNOWN_ID))
    share.finish()


def _vectors(loaded: LoadedModel, lines: list[str]) -> Vectors:
    from nmt_core.inference.embed import source_vectors

    return source_vectors(loaded, lines)


def _write_words(args: argparse.Namespace, loaded: LoadedModel) -> None:
    """All words of a side, most frequent first; to *.npy the matrix alone."""
    import numpy as np

    from nmt_core.files import open_output
    from nmt_core.inference.embed import word_vectors

    words = list(word_vectors(loaded, "source" if args.what == "source-words" else "target"))
    with open_output(args.output) as stream:
        if args.output.endswith(".npy"):
            _write_matrix(stream, np.stack([vector for _, vector in words]))
            return
        stream.write(f"{len(words)} {len(words[0][1])}\n".encode())
        for word, vector in words:
            stream.write(_row(word, vector, " "))


def _write_matrix(stream: BinaryIO, vectors: Vectors) -> None:
    import io

    import numpy as np

    content = io.BytesIO()  # a pipe cannot tell its place, which NumPy asks for
    np.save(content, vectors, allow_pickle=False)
    stream.write(content.getbuffer())


def _write_neighbours(
    stream: BinaryIO, queries: list[str], lines: list[str], vectors: tuple[Vectors, Vectors], count: int
) -> None:
    from nmt_core.inference.neighbours import nearest

    found = nearest(*vectors, neighbours=count)
    for query, places, cosines in zip(queries, found.places_QK.tolist(), found.cosines_QK.tolist(), strict=True):
        for rank, (place, cosine) in enumerate(zip(places, cosines, strict=True), start=1):
            stream.write(f"{query}\t{rank}\t{cosine:.6f}\t{lines[place]}\n".encode())


def _row(text: str, vector: Vectors, separator: str) -> bytes:
    """Nine digits are all that a float32 has."""
    line = separator.join([text, *(f"{number:.9g}" for number in vector.tolist())])
    return line.encode("utf-8", "surrogateescape") + b"\n"  # as words of other programs' vocabularies may need
