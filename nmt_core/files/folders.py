"""Folders of temporary files, which lie beside what is made of them and are found again there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

from nmt_core.files.writing import ENDING, remove_leftovers, temporary_beginning


@contextlib.contextmanager
def temporary_folder(path: str) -> Iterator[str]:
    """A folder for what is needed while ``path``, or what that leads to, is made; it goes with the block.

    It is locked as long as its program lives: what a program that was killed has left goes when ``path`` is made
    again, by the same user. Raises OSError where there can be none.
    """
    remove_leftovers(path)
    folder, name = os.path.split(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        yield _locked_folder(folder, temporary_beginning(name), stack)


def _locked_folder(folder: str, beginning: str, stack: contextlib.ExitStack) -> str:
    """A new folder; made again where another program took it for a leftover before it was locked."""
    while True:
        path = tempfile.mkdtemp(prefix=beginning, suffix=ENDING, dir=folder)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # there are file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits at most until a leftover is removed
        if os.fstat(descriptor).st_nlink:
            stack.callback(os.close, descriptor)
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            return path
        os.close(descriptor)
