"""Files that belong together, such as an output and the record that describes it, where several programs make them.

They get their names in turn, so that all of them are of one program. A program that has its turn holds a lock file
beside them, which goes with the turn; one that is not locked was left by a program that was killed. Folders are not
locked themselves: a command that is started by ``flock FOLDER`` would wait for its own end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import threading
from collections.abc import Iterator

from nmt_core.files.writing import ENDING, is_written_through, made_folder_of, refusal_reported, temporary_beginning
from nmt_core.messages import say

_SILENT_S = 1.0  # of waiting: who has the turn needs hardly ever longer


@contextlib.contextmanager
def in_turn(*paths: str | None) -> Iterator[None]:
    """Hold the lock of what is written together, that of the first of ``paths``; who asks for it meanwhile waits.

    Whoever waits for long says so. Standard output, devices and FIFOs have no lock, and there is none where no lock
    file can be made. Raises NmtError where the folder is not there and cannot be made.
    """
    with contextlib.ExitStack() as stack:
        path = next((path for path in paths if path and path != "-" and not is_written_through(path)), None)
        if path is not None:
            folder, name = os.path.split(os.path.realpath(path))
            stack.enter_context(made_folder_of(path))
            stack.enter_context(_held(os.path.join(folder, f"{temporary_beginning(name)}turn{ENDING}"), shown=path))
        yield


@contextlib.contextmanager
def folder_in_turn(folder: str) -> Iterator[None]:
    """The same for the files of a folder."""
    with _held(os.path.join(folder, f".turn{ENDING}"), shown=folder):
        yield


@contextlib.contextmanager
def record_renewed(record: str | None) -> Iterator[None]:
    """Remove the older record of an output, which gets its name in the block, and then its new record, ``in_turn``.

    Nothing is done for None, an output without a record. Raises NmtError where the older record cannot be removed.
    """
    if record is None:
        yield
        return
    with in_turn(record):
        with refusal_reported(record), contextlib.suppress(FileNotFoundError):
            os.unlink(record)
        yield


@contextlib.contextmanager
def _held(path: str, *, shown: str) -> Iterator[None]:
    """Make the lock file ``path`` of what is called ``shown``, and hold it; nothing where that cannot be done."""
    try:
        descriptor = _lock(path, shown=shown)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # its folder may be gone
            os.unlink(path)
        os.close(descriptor)


def _lock(path: str, *, shown: str) -> int:
    """The lock file, locked; made again where who held it before, or who looked for leftovers, has removed it.

    Raises OSError where that cannot be done.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            _wait_for(descriptor, path, shown=shown)
        except OSError:  # there are file systems without locks
            os.unlink(path)
            os.close(descriptor)
            raise
        except BaseException:
            os.close(descriptor)
            raise
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _wait_for(descriptor: int, path: str, *, shown: str) -> None:
    """Lock it. Raises OSError where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        found = f"fuser {shlex.quote(path)}"
        remark = f"{shown}: another program is writing it; this one waits for its end (which it is says: {found})"
        said = threading.Timer(_SILENT_S, say, [remark])
        said.daemon = True
        said.start()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        finally:
            said.cancel()
