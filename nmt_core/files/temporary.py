"""The folder of temporary files, and what is said where it takes no more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from nmt_core.base.errors import NmtError


@contextmanager
def room_for_temporary(what: str) -> Iterator[None]:
    """Raise NmtError, which names the folder, where ``what`` cannot be written there."""
    try:
        yield
    except OSError as error:
        problem = f"{tempfile.gettempdir()}: {what} cannot be kept there ({error.strerror})"
        raise NmtError(f"{problem}; make space, or name a folder on another disk in TMPDIR") from error
