"""What tells whether a file is the one that it was."""

from __future__ import annotations

import hashlib

from nmt_core.errors import InputError


def file_digest(path: str, *, shown: str | None = None) -> str:
    """SHA-256 of a file, as it lies there. Raises InputError, which calls it ``shown``."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(shown or path, f"cannot be read ({error.strerror})") from error
