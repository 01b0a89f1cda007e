"""Files that belong together, such as an output and the record that describes it, where several programs make them.

They get their names in turn, so that all of them are of one program. A program that has its turn holds a lock file
beside them, which goes with the turn; one that is not locked was left by a program that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from nmt_core.files.writing import ENDING, is_written_through, refusal_reported, temporary_beginning


@contextlib.contextmanager
def in_turn(path: str) -> Iterator[None]:
    """Hold the lock of ``path``; who asks for it meanwhile waits.

    There is none for standard output, a device or a FIFO, nor where no lock file can be made.
    """
    with contextlib.ExitStack() as stack:
        if path != "-" and not is_written_through(path):
            folder, name = os.path.split(os.path.realpath(path))
            with contextlib.suppress(OSError):
                stack.enter_context(_locked(os.path.join(folder, f"{temporary_beginning(name)}turn{ENDING}")))
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
def _locked(path: str) -> Iterator[None]:
    """Make the lock file and hold it. Raises OSError where that cannot be done."""
    descriptor = _lock(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # its folder may be gone
            os.unlink(path)
        os.close(descriptor)


def _lock(path: str) -> int:
    """The lock file, locked; made again where who held it before, or who looked for leftovers, has removed it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # there are file systems without locks
            os.unlink(path)
            os.close(descriptor)
            raise
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)
