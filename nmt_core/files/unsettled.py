"""Files of work that goes on: each is complete or not there, and outlives a power cut from when it is settled.

They lie in a folder that its program holds, and clears of what programs that were killed have left.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable

from nmt_core.files.writing import ENDING, full_disk_reported, refusal_reported, settle_folder


def write_unsettled(path: str, content: bytes) -> None:
    """Make or replace a file, whose name is not that of a device or a link. Raises NmtError where that cannot be done.

    After a power cut it may be empty or broken, so that whoever reads it compares it with a checksum.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{ENDING}")
    with full_disk_reported(path, ""):
        with refusal_reported(path):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with open(descriptor, "wb") as raw:
                raw.write(content)
            with refusal_reported(path):
                os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def settle(paths: Iterable[str]) -> None:
    """Have these files outlive a power cut. Raises NmtError where the disk has not kept one; lost ones are left out."""
    folders = set()
    for path in paths:
        with full_disk_reported(path, ""), contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            folders.add(os.path.dirname(path))
    for folder in folders:
        settle_folder(folder)
