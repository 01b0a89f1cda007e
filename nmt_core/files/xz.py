"""Files of xz as the xz program reads them: several streams, perhaps with padding between them, and nothing else.

Python's ``lzma.LZMAFile`` passes over what stands behind padding or does not begin as a stream, without a word.
"""

from __future__ import annotations

import io
import lzma
from typing import BinaryIO

_BLOCK = 1 << 16


class XzReader(io.RawIOBase):
    """The content of all streams. Raises LZMAError for anything else, EOFError where the last one is cut off."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._stream: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        """Fill a part of ``buffer``; its length, 0 at the end."""
        content = self._read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _read(self, most: int) -> bytes:
        while True:
            if self._stream is None or self._stream.eof:
                self._stream = self._next_stream()
                if self._stream is None:
                    return b""
            packed = self._raw.read(_BLOCK) if self._stream.needs_input else b""
            if not packed and self._stream.needs_input:
                raise EOFError("the last stream is not complete")
            content = self._stream.decompress(packed, most)
            if content:
                return content

    def _next_stream(self) -> lzma.LZMADecompressor | None:
        """The decompressor of what stands behind the last stream and zero bytes; None at the end of the file."""
        packed = self._stream.unused_data if self._stream is not None else b""
        while not (packed := packed.lstrip(b"\0")):
            packed = self._raw.read(_BLOCK)
            if not packed:
                return None
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        stream.decompress(packed, 0)
        return stream
