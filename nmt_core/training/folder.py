"""The folder of a training run: made, locked and tested before the work begins.

What would stop a run after hours (no right to write, a full disk, a second run into the same folder) is
found before the text is read. The lock is one of the operating system's and ends with the process,
however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files import overwritten
from nmt_core.model_directory.directory import LEXICON, PARAMETERS, SETTINGS, current
from nmt_core.training.state import COUNTERS, TENSORS

LOCK = "training.lock"
_WRITTEN = (SETTINGS, PARAMETERS, LEXICON, TENSORS, COUNTERS, LOCK)


class RunFolder:
    """A folder whose lock is held. Raises what ``_locked`` raises."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, LOCK)
        self._lock = _locked(self._path)
        self._place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # open, so that no other folder gets its number

    def check(self) -> None:
        """Raise NmtError where the folder is gone, ConfigError where it is another run's now.

        A lock file that somebody removed for a leftover is made again.
        """
        if not _is_still(self._folder, self._place):
            problem = "was removed, or moved away, while the run was at work; nothing more is saved there"
            raise NmtError(f"{self._folder}: {problem}: move it back and go on with --resume, or train anew")
        if not _is_still(self._path, self._lock):
            lock = _locked(self._path)
            os.close(self._lock)
            self._lock = lock

    def give_back(self) -> None:
        """Remove the lock if it is still ours, and close it."""
        if _is_still(self._path, self._lock):
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(self._lock)
        os.close(self._place)


@contextlib.contextmanager
def run_folder(folder: str) -> Iterator[RunFolder]:
    """Make ``folder`` and hold its lock inside the block; a folder made here that stays empty is removed.

    Raises NmtError when it cannot be written, ConfigError when another run has the lock.
    """
    new = not os.path.exists(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        held = RunFolder(folder)
    except OSError as error:
        raise NmtError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from error
    try:
        yield held
    finally:
        held.give_back()
        if new:
            with contextlib.suppress(OSError):  # it is not empty, as it should be
                os.rmdir(folder)


def check_spared(folder: str, read: Iterable[str]) -> None:
    """Raise ConfigError where a run in ``folder`` would write over one of the files, or the model folders, ``read``."""
    found = overwritten(read, [folder, *(os.path.join(folder, name) for name in _WRITTEN)])
    if found is not None:
        raise ConfigError(f"folder: a run in {folder} would write over {found.read}; choose another folder")


def check_disk_space(folder: str, size: int) -> None:
    """Take the ``size`` bytes of a run from the disk of ``folder`` and give them back; a state is there perhaps.

    Raises NmtError when they are not there.
    """
    size -= sum(_size(current(os.path.join(folder, name))) for name in (PARAMETERS, TENSORS))
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:  # without a name: nothing is left of it if we are killed
            os.posix_fallocate(stream.fileno(), 0, max(size, 1))
    except OSError as error:
        raise NmtError(
            f"{folder}: cannot hold the {size / 1e9:.2g} GB that a run writes ({error.strerror}); "
            "free some space or choose another folder"
        ) from error


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.path.getsize(path)
    return 0


def _locked(path: str) -> int:
    """The descriptor of the lock file, locked. Raises ConfigError when another run has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ConfigError(
                f"{os.path.dirname(path)}: another run is training into this folder; "
                "wait for its end or choose another folder"
            ) from None
        if _is_still(path, descriptor):
            return descriptor
        os.close(descriptor)  # the run before removed the file between our two calls


def _is_still(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
