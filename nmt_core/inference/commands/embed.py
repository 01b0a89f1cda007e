"""``nmt-core embed``: vectors of words, phrases and sentences."""

from __future__ import annotations

import argparse
import io
from typing import BinaryIO

import numpy as np

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.base.words import check_factors, check_words, split_words
from nmt_core.device import choose_device
from nmt_core.files import open_output, read_text_lines
from nmt_core.inference.embed import Vectors, source_vectors, word_vectors
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.text.vocabulary import UNKNOWN_ID


def embed(args: argparse.Namespace) -> int:
    """Load the model and write what was asked for."""
    of_lines = args.what == "lines"
    if of_lines == (args.input is None):
        raise ConfigError("give INPUT for vectors of lines, and none for those of words")
    loaded = load_model(args.model, device=choose_device(args.device))
    if not of_lines:
        _write_words(args, loaded)
        return 0
    lines = _read(args.input, loaded, args.max_words)
    _warn_of_unknown_words(loaded, lines)
    vectors = source_vectors(loaded, lines)
    with open_output(args.output) as stream:
        if args.output.endswith(".npy"):
            _write_matrix(stream, vectors)
        else:
            for line, vector in zip(lines, vectors, strict=True):
                stream.write(_row(line, vector, "\t"))
    return 0


def _read(path: str, loaded: LoadedModel, most_words: int) -> list[str]:
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

    def warn(message: str) -> None:
        say(f"nmt-core embed: warning: {message}")

    usual = loaded.source.unknown_share
    share = UnknownShare(loaded.folder, warn, hint="", serve=loaded.unknown_words_serve, usual=usual)
    for line in lines:
        share.add(words=len(split_words(line)), unknown=loaded.encode_text(line).count(UNKNOWN_ID))
    share.finish()


def _write_words(args: argparse.Namespace, loaded: LoadedModel) -> None:
    """All words of a side, most frequent first; to *.npy the matrix alone."""
    words = list(word_vectors(loaded, "source" if args.what == "source-words" else "target"))
    with open_output(args.output) as stream:
        if args.output.endswith(".npy"):
            _write_matrix(stream, np.stack([vector for _, vector in words]))
            return
        stream.write(f"{len(words)} {len(words[0][1])}\n".encode())
        for word, vector in words:
            stream.write(_row(word, vector, " "))


def _write_matrix(stream: BinaryIO, vectors: Vectors) -> None:
    content = io.BytesIO()  # a pipe cannot tell its place, which NumPy asks for
    np.save(content, vectors, allow_pickle=False)
    stream.write(content.getbuffer())


def _row(text: str, vector: Vectors, separator: str) -> bytes:
    """Nine digits are all that a float32 has."""
    line = separator.join([text, *(f"{number:.9g}" for number in vector.tolist())])
    return line.encode("utf-8", "surrogateescape") + b"\n"  # as words of other programs' vocabularies may need
