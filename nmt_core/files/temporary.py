"""Temporary files: a copy of what can be read once, and what is said where their directory takes no more."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import IO

from nmt_core.base.errors import NmtError, input_name
from nmt_core.files.lines import read_blocks


@contextlib.contextmanager
def readable_again(path: str) -> Iterator[str]:
    """A name under which the content can be read as often as wanted, by this program and the processes it starts.

    An ordinary file is its own. Standard input, a FIFO or a process substitution is decompressed into a
    temporary file, which has no name in any directory, so that nothing is left of it whatever happens. Raises
    InputError as ``read_lines``, so that what never ends a line (``/dev/zero``) does not fill the disk, and NmtError
    where the directory of temporary files has no space for it.
    """
    if path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
        yield path
        return
    with room_for_temporary(input_name(path)):
        copy = _copy(path)
    with copy:
        yield f"/proc/{os.getpid()}/fd/{copy.fileno()}"


def _copy(path: str) -> IO[bytes]:
    """A temporary file with the content of ``path``."""
    with contextlib.ExitStack() as unfinished:
        copy = unfinished.enter_context(tempfile.TemporaryFile(prefix="hybridmt-"))
        copy.writelines(read_blocks(path, as_it_is=True))
        copy.flush()
        unfinished.pop_all()
    return copy


@contextlib.contextmanager
def room_for_temporary(what: str) -> Iterator[None]:
    """Raise NmtError, which names the directory, where ``what`` cannot be written there."""
    try:
        yield
    except OSError as error:
        problem = f"{tempfile.gettempdir()}: {what} cannot be kept there ({error.strerror})"
        raise NmtError(f"{problem}; make space, or name a directory on another disk in TMPDIR") from error
