"""Where an output goes: whether it can be made there, what is replaced, and what is written through."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO, cast

from nmt_core.base.errors import NmtError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DESCRIPTOR = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # as Linux follows


def check_output(path: str) -> None:
    """Raise NmtError where an output could not be made, so that it is known before the work and not behind it."""
    if path == "-":
        if sys.stdout is None:
            raise NmtError("standard output: is closed; give a file, or let the shell open it")
        return
    if is_written_through(path):
        return
    with refusal_reported(path):
        state_of(path)
        folder = _missing_folders(path)[-1]
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def is_written_through(path: str) -> bool:
    """Whether ``path`` is a device, a FIFO or an open descriptor (``/dev/stdout``) and not a file to be replaced."""
    if _descriptor(path) is not None:
        return True
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


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


def state_of(path: str) -> os.stat_result | None:
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


def take_over(descriptor: int, before: os.stat_result) -> None:
    """Give the new file owner and rights of the old one, as far as we may."""
    new = os.fstat(descriptor)
    for owner in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        if (new.st_uid, new.st_gid) == (before.st_uid, before.st_gid):
            break
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *owner)
            break
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def sync_folder(folder: str) -> None:
    """Have the new name outlive a power cut, too, where the file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_special(path: str) -> Iterator[BinaryIO]:
    """Open a device, a FIFO or a descriptor for writing."""
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
