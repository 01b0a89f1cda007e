"""The folder ``OUT.parts``: for one job at a time, and never one that is somebody else's.

The file ``lock`` in it says that the folder is ours and is locked by every program that works there, shared where
several do parts, alone for one that puts them together or begins anew. It is the last that goes. A job of which no
part is finished is none: there is nothing to go on with, whatever has changed since it was begun.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator

from nmt_core.errors import ConfigError, NmtError

MANIFEST = "manifest.json"
_LOCK = "lock"
_MARK = b"hybridmt: parts of a job; they go when it is complete\n"
_OUTPUT = re.compile(r"[0-9]{6,}(?:\.gz|\.xz|\.zst)?")
_OURS = re.compile(r"[0-9]{6,}(?:\.[0-9]+)?(?:\.json|\.gz|\.xz|\.zst)?|manifest\.json|\..*\.hybridmt\.tmp")


@contextlib.contextmanager
def held_folder(path: str, *, restart: bool, alone: bool) -> Iterator[None]:
    """Make the folder where there is none, and hold it, ``alone`` or with others; with ``restart`` it is emptied.

    It goes with a program that ends by an error before anything is finished there. Raises ConfigError where another
    program holds it and where it is not ours, NmtError where it cannot be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            lock = _locked(path, alone=alone or restart)
            stack.callback(os.close, lock)
            if restart or (alone and not _has_output(path)):
                _remove_parts(path)
            if os.fstat(lock).st_size == 0:
                os.pwrite(lock, _MARK, 0)
            if not alone:
                fcntl.flock(lock, fcntl.LOCK_SH)
        except OSError as error:
            raise NmtError(f"{path}: cannot be written ({error.strerror})") from error
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):  # another program works there, or the folder is gone
                _remove_unless_begun(path, lock)
            raise


def _remove_unless_begun(path: str, lock: int) -> None:
    """Remove the folder where nothing is finished in it. Raises BlockingIOError where others hold it, too."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not _has_output(path):
        remove_folder(path)


def remove_folder(path: str) -> None:
    """Remove it, by a program that holds it alone; files that are not of a job stay, and the folder with them."""
    _remove_parts(path)
    with contextlib.suppress(OSError):
        if os.listdir(path) == [_LOCK]:
            os.unlink(os.path.join(path, _LOCK))
            os.rmdir(path)


def _locked(path: str, *, alone: bool) -> int:
    while True:
        os.makedirs(path, exist_ok=True)
        if not _is_ours(path):
            problem = "is there already and does not hold parts of a job; move it away, or choose another --output"
            raise ConfigError(f"{path}: {problem}")
        name = os.path.join(path, _LOCK)
        with contextlib.ExitStack() as stack:
            try:
                lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:
                continue  # the program that held it has just removed the folder
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(f"{path}: another program works there now; wait for it, or stop it") from error
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(name)):
                    stack.pop_all()
                    return lock


def _is_ours(path: str) -> bool:
    """Whether the folder is empty, or marked, or holds the manifest of an earlier version, which had no mark."""
    names = os.listdir(path)
    if not names or (names == [_LOCK] and not os.path.getsize(os.path.join(path, _LOCK))):
        return True
    with contextlib.suppress(OSError), open(os.path.join(path, _LOCK), "rb") as lock:
        if lock.read(len(_MARK)) == _MARK:
            return True
    with contextlib.suppress(OSError, ValueError), open(os.path.join(path, MANIFEST), "rb") as manifest:
        content = json.load(manifest)
        return isinstance(content, dict) and {"format", "description", "shards"} <= content.keys()
    return False


def _has_output(path: str) -> bool:
    """Whether a part is finished."""
    return any(map(_OUTPUT.fullmatch, os.listdir(path)))


def _remove_parts(path: str) -> None:
    """All files that a job makes, the manifest last: while it is there, what else is there belongs to it."""
    for name in sorted(os.listdir(path), key=lambda name: name == MANIFEST):
        if _OURS.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(path, name))
