"""What becomes of a file that is written; the one policy for every output of every command.

========================== ===================================================================================
a new name                 appears when it is complete, with the rights that the umask leaves; folders on the way that
                           are not there are made, and go again where nothing comes of it
an ordinary file           is replaced when the new content is complete, with its rights and, where we may, its owner
a symbolic link            stays; the file that it leads to is made or replaced
a device, a FIFO           is written to as it is, also ``/dev/stdout`` and ``/dev/fd/3``
``-``                      standard output
========================== ===================================================================================

Content is written beside its final place, into a temporary file that is locked as long as its writer lives. One
that is not locked was left by a program that was killed, and goes when the same output is made again; likewise the
folders of ``temporary_folder``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO, cast

from nmt_core.errors import NmtError
from nmt_core.files.compression import packed

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DESCRIPTOR = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # as Linux follows
_LONGEST_NAME = 200  # bytes of a name that stand in that of its temporary file; 255 is the limit of file systems


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard output) for writing bytes; ``*.gz``, ``*.xz`` and ``*.zst`` are compressed.

    When the block ends with an exception, nothing is left behind and an older file stays as it was.
    Raises NmtError where the output cannot be made or the disk is full.
    """
    if path == "-":
        check_output(path)
        with full_disk_reported("standard output", ""):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with made_folder_of(path), open_replacement(path) as raw, packed(raw, path) as stream:
        yield stream


def check_output(path: str) -> None:
    """Raise NmtError where an output could not be made, so that it is known before the work and not behind it."""
    if path == "-":
        if sys.stdout is None:
            raise NmtError("standard output: is closed; give a file, or let the shell open it")
        return
    if is_written_through(path):
        return
    with refusal_reported(path):
        _state_of(path)
        folder = _missing_folders(path)[-1]
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def made_folder_of(path: str) -> Iterator[None]:
    """Make the folder of a file that is to be made in the block; folders made here that stay empty go again.

    Raises NmtError where it cannot be made.
    """
    with refusal_reported(path):
        *missing, _ = _missing_folders(path)
    try:
        with refusal_reported(path):
            for folder in reversed(missing):
                with contextlib.suppress(FileExistsError):  # made by another program meanwhile
                    os.mkdir(folder)
        yield
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):  # it is not empty, as it should be
                os.rmdir(folder)


def _missing_folders(path: str) -> list[str]:
    """The folders of a file that are not there, the innermost first, and behind them the first that is."""
    found = [os.path.dirname(os.path.realpath(path))]
    while not os.path.lexists(found[-1]):
        found.append(os.path.dirname(found[-1]))
    return found


@contextlib.contextmanager
def open_replacement(path: str) -> Iterator[BinaryIO]:
    """The same for bytes that are written as they are, whatever the name."""
    if is_written_through(path):
        with full_disk_reported(path, "; what was written before is there"), _open_special(path) as stream:
            yield stream
        return
    with full_disk_reported(path, "; the older file, if any, is untouched"):
        with refusal_reported(path):
            target = os.path.realpath(path)
            before = _state_of(path)
        with _temporary(target, shown=path) as (raw, temporary):
            yield raw
            raw.flush()
            if before is not None:
                _take_over(raw.fileno(), before)
            os.fsync(raw.fileno())
            with refusal_reported(path):
                os.replace(temporary, target)
        settle_folder(os.path.dirname(target))


def is_written_through(path: str) -> bool:
    """Whether ``path`` is a device, a FIFO or an open descriptor (``/dev/stdout``) and not a file to be replaced."""
    if _descriptor(path) is not None:
        return True
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def remove_leftovers(path: str) -> None:
    """Remove what programs that were killed while they wrote ``path`` have left beside it."""
    folder, name = os.path.split(os.path.realpath(path))
    beginning = temporary_beginning(name)
    with contextlib.suppress(OSError):
        for found in os.listdir(folder):
            if found.startswith(beginning) and found.endswith(ENDING):
                _remove_unless_locked(os.path.join(folder, found))


ENDING = ".hybridmt.tmp"
"""Of the names of temporary files."""


@contextlib.contextmanager
def full_disk_reported(name: str, remark: str) -> Iterator[None]:
    """A full disk as one line; other errors are of something else that is done meanwhile."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise NmtError(f"{name}: cannot be written ({error.strerror}){remark}") from error


@contextlib.contextmanager
def refusal_reported(path: str) -> Iterator[None]:
    """Whatever the operating system says against making a file, as one line."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise NmtError(f"{path}: cannot be written ({getattr(error, 'strerror', error)})") from error


@contextlib.contextmanager
def _temporary(target: str, *, shown: str) -> Iterator[tuple[BinaryIO, str]]:
    """A locked file beside ``target``, and its name; it is removed if it is not renamed."""
    remove_leftovers(target)
    folder, name = os.path.split(target)
    descriptor, path = _locked_file(os.path.join(folder, temporary_beginning(name)), shown=shown)
    with open(descriptor, "wb") as raw:
        try:
            yield cast(BinaryIO, raw), path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _locked_file(beginning: str, *, shown: str) -> tuple[int, str]:
    """A new file, locked; made again where another program took it for a leftover before it was locked."""
    while True:
        path = f"{beginning}{secrets.token_hex(4)}{ENDING}"
        with refusal_reported(shown):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # there are file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits at most until a leftover is removed
        if os.fstat(descriptor).st_nlink:
            return descriptor, path
        os.close(descriptor)


def temporary_beginning(name: str) -> str:
    """How the names of the temporary files of ``name`` begin."""
    encoded = os.fsencode(name)
    return f".{name}." if len(encoded) <= _LONGEST_NAME else f".{hashlib.sha256(encoded).hexdigest()}."


def _remove_unless_locked(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(descriptor)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(path)
            elif found.st_uid == os.geteuid():
                shutil.rmtree(path)
        finally:
            os.close(descriptor)


def _state_of(path: str) -> os.stat_result | None:
    """The file that will be replaced. Raises NmtError for one that must not be."""
    if not os.path.basename(path):
        raise NmtError(f"{path or repr(path)}: cannot be written (expected the name of a file)")
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise NmtError(f"{path}: cannot be written (Is a directory)")
    if not os.access(path, os.W_OK):
        raise NmtError(f"{path}: cannot be written (the file is write-protected)")
    if not _may_be_replaced(found, os.path.dirname(os.path.realpath(path))):
        problem = "the file is another user's, and in this folder nobody else may replace it"
        raise NmtError(f"{path}: cannot be written ({problem})")
    return found


def _may_be_replaced(file: os.stat_result, folder: str) -> bool:
    """False for a file of somebody else in somebody else's folder that is sticky, such as ``/tmp``."""
    place = os.stat(folder)
    return not place.st_mode & stat.S_ISVTX or os.geteuid() in (0, file.st_uid, place.st_uid)


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Give the new file owner and rights of the old one, as far as we may."""
    new = os.fstat(descriptor)
    for owner in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        if (new.st_uid, new.st_gid) == (before.st_uid, before.st_gid):
            break
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *owner)
            break
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def settle_folder(folder: str) -> None:
    """Have the new name outlive a power cut, too, where the file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _open_special(path: str) -> Iterator[BinaryIO]:
    descriptor = _descriptor(path)
    if descriptor is not None and sys.stdout is not None:
        sys.stdout.flush()  # what was printed before comes before
    with contextlib.ExitStack() as stack:
        with refusal_reported(path):
            stream = stack.enter_context(open(path if descriptor is None else os.dup(descriptor), "wb"))
        yield cast(BinaryIO, stream)


def _descriptor(path: str) -> int | None:
    """The number of the open descriptor of ours that ``path`` is another name of."""
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        found = _DESCRIPTOR.fullmatch(os.path.realpath(folder))
        if found and name.isdecimal():
            return int(name)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None
