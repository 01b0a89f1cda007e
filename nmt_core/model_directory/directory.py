"""The files of a model directory, replaced together: a reader finds the old model or the new one, at every moment.

``config.yaml`` names the other files and is replaced last. What a file of a name holds never changes while there is a
model: the first model's files have plain names; what differs in a later one has a name with its hash, such as
``model-3f2a….safetensors``.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Callable, Mapping

from nmt_core.base.errors import NmtError
from nmt_core.base.words import MOST_FACTORS
from nmt_core.files import file_digest, partial_output
from nmt_core.files.output import PartialOutput, sync

SETTINGS = "config.yaml"
PARAMETERS = "model.safetensors"
SOURCE_VOCABULARY = "source.vocab"
TARGET_VOCABULARY = "target.vocab"
FACTOR_VOCABULARIES = tuple(f"source.factor{number}.vocab" for number in range(1, MOST_FACTORS + 1))
VOCABULARIES = (SOURCE_VOCABULARY, TARGET_VOCABULARY, *FACTOR_VOCABULARIES)
PREPARATION = "preparation"
LEXICON = "lexicon.gz"
_STAGED = ".saving"  # the new files until all of them are complete; of no account
_DIGITS = 16


def replace_model(
    directory: str, writers: Mapping[str, Callable[[str], None]], settings: Callable[[Mapping[str, str]], bytes]
) -> None:
    """Write the files of a model by plain name, each with a function that is given a path.

    ``settings`` makes ``config.yaml``, given the names of those files that have another than their plain name.
    Raises NmtError; the model before is then unchanged, and a directory that was made for it is removed.
    """
    is_new = not os.path.exists(directory)
    try:
        with partial_output(os.path.join(directory, SETTINGS)) as output:  # which locks
            output.cut(0)
            _write_files(directory, writers, settings, output)
    except OSError as error:
        problem = error.strerror or error
        raise NmtError(f"{directory}: cannot be written ({problem}); what it held before is unchanged") from error
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty, as it should be
                os.rmdir(directory)


def _write_files(
    directory: str,
    writers: Mapping[str, Callable[[str], None]],
    settings: Callable[[Mapping[str, str]], bytes],
    output: PartialOutput,
) -> None:
    staged = os.path.join(directory, _STAGED)
    shutil.rmtree(staged, ignore_errors=True)
    try:
        names = {plain: _stage(directory, plain, write) for plain, write in writers.items()}
        output.stream.write(settings({plain: name for plain, name in names.items() if name != plain}))
        output.stream.flush()  # a full disk is noticed here, before anything has its name
        paths = {os.path.join(directory, plain): os.path.join(directory, name) for plain, name in names.items()}
        for plain, path in zip(names, paths.values(), strict=True):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(os.path.join(staged, plain), path)
        for place in {directory, *map(os.path.dirname, paths.values())}:
            sync(place)
        output.commit()
        for plain, path in paths.items():
            _remove_others(plain, path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _stage(directory: str, plain: str, write: Callable[[str], None]) -> str:
    """Write a file; the name that it will have."""
    path = os.path.join(directory, _STAGED, plain)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path)
    sync(path)
    digest, before = file_digest(path), os.path.join(directory, plain)
    if not os.path.exists(os.path.join(directory, SETTINGS)):
        return plain
    if os.path.exists(before) and file_digest(before) == digest:
        return plain
    stem, ending = os.path.splitext(plain)
    return f"{stem}-{digest[:_DIGITS]}{ending}"


def _remove_others(plain: str, current: str) -> None:
    """Remove what ``current`` replaces, and what savings that were killed left: files of the same plain name."""
    stem, ending = os.path.splitext(plain)
    hashed = glob.glob(f"{glob.escape(stem)}-{'[0-9a-f]' * _DIGITS}{ending}")
    for path in {plain, *hashed} - {current}:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
