"""The one way to write an output, for every file of every command.

========================== ===================================================================================
a new name                 appears when it is complete, with the permissions that the umask leaves; missing directories
                           are made
an ordinary file           is replaced when the new content is complete; it keeps its permissions and, where possible,
                           its owner
a symbolic link            stays; the file that it leads to is made or replaced
a device, a FIFO           is written through, also ``/dev/stdout`` and ``/dev/fd/3``
``-``                      standard output
========================== ===================================================================================

Content is written to ``.NAME.hybridmt.tmp`` beside its final place. That file is locked while its writer lives, so a
second writer is rejected. What a killed program left there is used again by the next writer of the same output.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from nmt_core.base.errors import NmtError
from nmt_core.files.compression import compressed

PARTIAL = ".hybridmt.tmp"  # the content of an output that has no name yet
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}


@contextlib.contextmanager
def open_output(
    path: str, *, as_it_is: bool = False, on_complete: Callable[[], None] | None = None
) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard output) for writing bytes.

    With ``*.gz``, ``*.xz`` and ``*.zst`` they are compressed, unless they are to be written ``as_it_is``.
    ``on_complete`` is called when the content is there, before it gets its name (``beside(path, PARTIAL)`` is where).
    When the block ends with an exception, nothing is left behind and an older file stays as it was.
    Raises NmtError where the output cannot be made, another program writes it, or the disk is full.
    """
    with partial_output(path) as output:
        output.cut(0)
        with compressed(output.stream, "" if as_it_is else path) as stream:
            yield stream
        output.stream.flush()
        if on_complete is not None:
            on_complete()
        output.commit()


def _open_through(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    number = _descriptor(path)
    if number == 1:
        return contextlib.nullcontext(sys.stdout.buffer)
    with _reported(path):
        return cast(BinaryIO, open(path if number is None else os.dup(number), "wb"))


def is_written_through(path: str) -> bool:
    """Whether ``path`` is standard output, a device, a FIFO or an open descriptor and not a file to be replaced."""
    if _descriptor(path) is not None:
        return True
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _descriptor(path: str) -> int | None:
    """The number of the open descriptor of ours that ``path`` is another name of."""
    if path in _STANDARD:
        return _STANDARD[path]
    directory, name = os.path.split(path)
    return int(name) if name.isdecimal() and os.path.realpath(directory) == f"/proc/{os.getpid()}/fd" else None


def check_output(path: str) -> os.stat_result | None:
    """The file that will be replaced. Raises NmtError where the output could not be made.

    So that is known before the work and not behind it.
    """
    if _descriptor(path) == 1 and sys.stdout is None:
        raise NmtError("standard output: is closed; give a file, or let the shell open it")
    if is_written_through(path):
        if (number := _descriptor(path)) is not None:
            with _reported(path):
                os.fstat(number)  # which the user has to have opened: later it is one of ours
        return None
    with _reported(path):
        if not os.path.basename(path):
            raise ValueError("expected the name of a file")
        before = os.stat(path) if os.path.lexists(os.path.realpath(path)) else None
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if before is not None and not os.access(path, os.W_OK):
            raise ValueError("the file is write-protected")
        directory = next(one for one in Path(os.path.realpath(path)).parents if os.path.lexists(one))
        if not directory.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return before


@dataclass
class PartialOutput:
    """An output in the making: ``stream`` writes to ``.NAME.hybridmt.tmp``, ``commit`` gives it its name.

    What is not committed stays for another program if it ``is_kept``, as what an earlier one left is until it is cut.
    An output that is written through has its content as soon as that is flushed.
    """

    path: str
    stream: BinaryIO
    before: os.stat_result | None = None
    is_file: bool = True
    is_kept: bool = False

    def cut(self, end: int) -> None:
        """Keep so many bytes of what is there, and go on behind them."""
        if self.is_file:
            self.stream.seek(end)
            self.stream.truncate()
            self.is_kept = end > 0

    def commit(self) -> None:
        """Give the file its name. Raises NmtError where that cannot be done."""
        self.stream.flush()
        if not self.is_file:
            return
        if self.before is not None:
            with contextlib.suppress(OSError):
                os.fchown(self.stream.fileno(), self.before.st_uid, self.before.st_gid)
            os.fchmod(self.stream.fileno(), stat.S_IMODE(self.before.st_mode))
        os.fsync(self.stream.fileno())
        with _reported(self.path):
            os.replace(beside(self.path, PARTIAL), os.path.realpath(self.path))
        self.is_kept = True
        with contextlib.suppress(OSError):  # there are file systems that cannot sync a directory
            sync(os.path.dirname(os.path.realpath(self.path)))


@contextlib.contextmanager
def partial_output(path: str) -> Iterator[PartialOutput]:
    """The output in the making, locked; at the end of the block it goes, unless it was committed or is kept.

    Raises NmtError where it cannot be made, another program writes it, or the disk is full.
    """
    before = check_output(path)
    if is_written_through(path):
        shown, remark = ("standard output", "") if path == "-" else (path, "; what was written before is there")
        with _reported(shown, remark, errnos=DISK_FULL), _open_through(path) as stream:
            yield PartialOutput(path, stream, is_file=False)
        return
    temporary = beside(path, PARTIAL)
    with (
        _reported(path, "; the older file, if any, is untouched", errnos=DISK_FULL),
        locked(temporary, shown=path) as stream,
    ):
        output = PartialOutput(path, stream, before, is_kept=os.fstat(stream.fileno()).st_size > 0)
        try:
            yield output
        finally:
            if not output.is_kept:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)


def beside(path: str, ending: str) -> str:
    """The name of a file of ours beside an output, which no file of a user has."""
    directory, name = os.path.split(os.path.realpath(path))
    return os.path.join(directory, f".{name}{ending}")


def locked(path: str, *, shown: str) -> BinaryIO:
    """The file at ``path``, made where it is missing, open and locked until it is closed.

    Raises NmtError about ``shown`` where the file cannot be made or another program holds it.
    """
    while True:
        with _reported(shown):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with _reported(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise NmtError(f"{shown}: another program is writing it; wait for its end, or stop it") from error
            except OSError:  # there are file systems without locks
                pass
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NmtError(f"{shown}: cannot be written ({path} is in the way; remove it)")
            with contextlib.suppress(FileNotFoundError):  # the program that held it may have renamed or removed it
                if os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
                    stack.pop_all()
                    return open(descriptor, "r+b")


def sync(path: str) -> None:
    """Bring a file, or the names in a directory, to the disk, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _reported(shown: str, remark: str = "", *, errnos: tuple[int, ...] | None = None) -> Iterator[None]:
    """What the operating system says against an output, as one line; of ``errnos`` alone where others are of more."""
    try:
        yield
    except (OSError, ValueError) as error:
        if errnos is not None and getattr(error, "errno", None) not in errnos:
            raise
        raise NmtError(f"{shown}: cannot be written ({getattr(error, 'strerror', error)}){remark}") from error
