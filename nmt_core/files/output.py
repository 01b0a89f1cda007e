"""The one way to write an output, for every file of every command.

========================== ===================================================================================
a new name                 appears when it is complete, with the permissions that the umask leaves; missing directories
                           are made, and removed again where nothing comes of it
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
import fcntl
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, Self

from nmt_core.base.errors import NmtError
from nmt_core.files.compression import packed
from nmt_core.files.target import (
    check_output,
    full_disk_reported,
    is_written_through,
    made_folder_of,
    open_special,
    refusal_reported,
    state_of,
    sync_folder,
    take_over,
)

ENDING = ".hybridmt.tmp"
_LONGEST_NAME = 200  # bytes of a name that stand in that of its temporary file; 255 is the limit of file systems


def _nothing() -> None:
    pass


@contextlib.contextmanager
def open_output(path: str, *, finish: Callable[[], None] = _nothing) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard output) for writing bytes; ``*.gz``, ``*.xz`` and ``*.zst`` are compressed.

    ``finish`` is called when the content is complete, before it gets its name (``complete_content`` says where it is).
    When the block ends with an exception, nothing is left behind and an older file stays as it was.
    Raises NmtError where the output cannot be made, another program writes it, or the disk is full.
    """
    with open_uncompressed(path) as raw:
        with packed(raw, "" if path == "-" else path) as stream:
            yield stream
        raw.flush()
        finish()


def complete_content(path: str) -> str:
    """Where the content of an output is that has no name yet."""
    return _temporary_name(os.path.realpath(path))


@contextlib.contextmanager
def open_uncompressed(path: str) -> Iterator[BinaryIO]:
    """The same for bytes that are written as they are, whatever the name."""
    if path == "-":
        check_output(path)
        with full_disk_reported("standard output", ""):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    elif is_written_through(path):
        with full_disk_reported(path, "; what was written before is there"), open_special(path) as stream:
            yield stream
    else:
        with PartialOutput(path) as partial:
            partial.cut(0)
            yield partial.stream
            partial.commit()


class PartialOutput:
    """An ordinary file in the making: ``stream`` writes to ``.NAME.hybridmt.tmp``, ``commit`` gives it its name.

    At the end of the ``with`` block the file goes, unless it was committed or ``keep`` was called.
    """

    stream: BinaryIO

    def __init__(self, path: str) -> None:
        self._path = path
        self._kept = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(full_disk_reported(self._path, "; the older file, if any, is untouched"))
            stack.enter_context(made_folder_of(self._path))
            with refusal_reported(self._path):
                self._target = os.path.realpath(self._path)
                self._before = state_of(self._path)
            self._temporary = _temporary_name(self._target)
            self.stream = stack.enter_context(open(_locked(self._temporary, shown=self._path), "r+b"))
            stack.callback(self._remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._stack.__exit__(*error)  # type: ignore[arg-type]  # which are those of the block

    def cut(self, end: int) -> None:
        """Keep so many bytes of what is there, and go on behind them."""
        self.stream.seek(end)
        self.stream.truncate()

    def keep(self) -> None:
        """Let the file stay without its name, to be continued by another program."""
        self._kept = True

    def sync(self) -> None:
        """Have what was written survive a power cut."""
        self.stream.flush()
        os.fsync(self.stream.fileno())

    def commit(self) -> None:
        """Give the file its name. Raises NmtError where that cannot be done."""
        self.stream.flush()
        if self._before is not None:
            take_over(self.stream.fileno(), self._before)
        self.sync()
        with refusal_reported(self._path):
            os.replace(self._temporary, self._target)
        self._kept = True
        sync_folder(os.path.dirname(self._target))

    def _remove(self) -> None:
        if not self._kept:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)


def _temporary_name(target: str) -> str:
    """The name under which ``target`` is written; of a very long name a hash."""
    folder, name = os.path.split(target)
    encoded = os.fsencode(name)
    short = name if len(encoded) <= _LONGEST_NAME else hashlib.sha256(encoded).hexdigest()
    return os.path.join(folder, f".{short}{ENDING}")


def _locked(path: str, *, shown: str) -> int:
    """The file, made where it is missing, and locked. Raises NmtError where another program holds it."""
    while True:
        with refusal_reported(shown):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise NmtError(f"{shown}: another program is writing it; wait for its end, or stop it") from error
            except OSError:  # there are file systems without locks
                pass
            if not _is_own(descriptor, os.path.dirname(path)):
                raise NmtError(f"{shown}: cannot be written ({path} is in the way; remove it)")
            if _is_named(descriptor, path):
                stack.pop_all()
                return descriptor


def _is_own(descriptor: int, folder: str) -> bool:
    """Whether the open file is an ordinary one of this user, or of the owner of the folder, who may do all in it.

    Some file systems (vfat, CIFS, NFS for root) give every file an owner of their choice.
    """
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), os.stat(folder).st_uid)


def _is_named(descriptor: int, path: str) -> bool:
    """Whether the open file still has its name: the program that held it may have renamed or removed it."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    return False
