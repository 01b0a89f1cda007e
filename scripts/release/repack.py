"""Compress a wheel's files again with Zopfli, whose output any unzip reads and which is some 2 % smaller.

    python scripts/release/repack.py WHEEL

Names, order, permissions and contents stay, and so what RECORD says of them. Needs the package zopfli.
"""

from __future__ import annotations

import os
import sys
import zipfile

import zopfli.zlib


class Compressor:
    """What zipfile asks of an object of ``zlib.compressobj``."""

    def __init__(self) -> None:
        self._content = b""

    def compress(self, content: bytes) -> bytes:
        """Nothing yet."""
        self._content += content
        return b""

    def flush(self) -> bytes:
        """Everything, without the head and the checksum of zlib's format."""
        compressed: bytes = zopfli.zlib.compress(self._content)
        return compressed[2:-4]


def repack(path: str) -> None:
    """The wheel is replaced when the new one is whole."""
    zipfile._get_compressor = lambda *_: Compressor()  # type: ignore[attr-defined]  # zipfile takes no other compressor
    part = path + ".part"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
    os.replace(part, path)


if __name__ == "__main__":
    repack(sys.argv[1])
