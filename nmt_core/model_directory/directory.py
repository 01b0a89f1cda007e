"""Several files of a folder, replaced together: a reader finds the old ones or the new ones, at every moment.

::

    FOLDER/.saving/       new files while they are written; of no account
    FOLDER/.saved/        new files, complete and on the disk, that count instead of those of the same names beside it

``.saving`` becomes ``.saved`` with one renaming, at which the new files begin to count. Then they are put in
their places one after the other, and ``.saved`` goes. Whoever is interrupted in between leaves it to the next
one who saves, and readers look there first (``current``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping

from nmt_core.base.errors import NmtError
from nmt_core.base.words import MOST_FACTORS
from nmt_core.files import partial_output

_WRITING = ".saving"
_WRITTEN = ".saved"
_OLD = ".old."  # folders that were replaced


def replace_files(folder: str, writers: Mapping[str, Callable[[str], None]]) -> None:
    """Write files (or folders) by name, each with a function that is given a path. Raises NmtError.

    A folder that was made for them and stays empty goes again.
    """
    new = not os.path.exists(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        with partial_output(os.path.join(folder, "config.yaml")):  # which locks: two would make a mixture of both
            _put_in_place(folder)
            _write(folder, writers)
            _put_in_place(folder)
    except OSError as error:
        problem = error.strerror or error
        raise NmtError(f"{folder}: cannot be written ({problem}); what it held before is untouched") from error
    finally:
        if new:
            with contextlib.suppress(OSError):  # it is not empty, as it should be
                os.rmdir(folder)


def _write(folder: str, writers: Mapping[str, Callable[[str], None]]) -> None:
    """Make ``.saved`` of the new files; where that fails, nothing is left of them."""
    writing = os.path.join(folder, _WRITING)
    shutil.rmtree(writing, ignore_errors=True)
    os.mkdir(writing)
    try:
        for name, write in writers.items():
            write(os.path.join(writing, name))
            _finish(os.path.join(writing, name))
        _sync(writing)
        os.rename(writing, os.path.join(folder, _WRITTEN))
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise
    _sync(folder)


def current(path: str) -> str:
    """Where the file ``path`` is to be read: a save that was interrupted may not have put it there yet."""
    folder, name = os.path.split(path)
    written = os.path.join(folder, _WRITTEN, name)
    return written if os.path.lexists(written) else path


def state_of(folder: str, names: tuple[str, ...]) -> tuple[tuple[str, tuple[int, int, int] | None], ...]:
    """What changes when one of these files is replaced, or moved to its place."""
    found: list[tuple[str, tuple[int, int, int] | None]] = []
    for path in [current(os.path.join(folder, name)) for name in names]:
        try:
            stat = os.stat(path)
            found.append((path, (stat.st_ino, stat.st_mtime_ns, stat.st_size)))
        except OSError:
            found.append((path, None))
    return tuple(found)


def _put_in_place(folder: str) -> None:
    """Complete a save."""
    written = os.path.join(folder, _WRITTEN)
    if not os.path.isdir(written):
        return
    for name in sorted(os.listdir(written)):
        if not name.startswith(_OLD):
            _move(os.path.join(written, name), os.path.join(folder, name))
    _sync(folder)
    shutil.rmtree(written)


def _move(written: str, path: str) -> None:
    """Put a file or folder in its place; an older folder, which cannot be replaced, is moved away before."""
    if os.path.isdir(path):
        old = os.path.join(os.path.dirname(written), _OLD + os.path.basename(path))
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
    os.replace(written, path)


def _finish(path: str) -> None:
    """Bring a file, or the files of a folder, to the disk, and let those read them who may read new ones."""
    if os.path.isdir(path):
        for name in os.listdir(path):
            _finish(os.path.join(path, name))
    else:
        os.chmod(path, os.stat(os.path.dirname(path)).st_mode & 0o666)
    _sync(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SETTINGS = "config.yaml"
PARAMETERS = "model.safetensors"
SOURCE_VOCABULARY = "source.vocab"
TARGET_VOCABULARY = "target.vocab"
FACTOR_VOCABULARIES = tuple(f"source.factor{number}.vocab" for number in range(1, MOST_FACTORS + 1))
PREPARATION = "preparation"
LEXICON = "lexicon.gz"
NAMES = (SETTINGS, PARAMETERS, SOURCE_VOCABULARY, TARGET_VOCABULARY, *FACTOR_VOCABULARIES, PREPARATION, LEXICON)
