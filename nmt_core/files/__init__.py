r"""Reading and writing files the way Unix filters do.

``-`` is standard input or output. gzip, xz and zstd are recognised by their first bytes when reading and by the
names ``*.gz``, ``*.xz`` and ``*.zst`` when writing. Lines end at ``\n`` and nowhere else (other line separators of
Unicode are ordinary characters of a token). A file appears under its final name only when it is complete.
"""

from __future__ import annotations

from nmt_core.files.arguments import (
    InputFile,
    NamedInput,
    OutputDirectory,
    OutputFile,
    check_files,
    overwritten,
)
from nmt_core.files.compression import pack
from nmt_core.files.lines import (
    decode_lines,
    packing_of,
    read_beginning,
    read_blocks,
    read_lines,
    read_parallel_lines,
    read_text_lines,
    unequal_lines,
    write_lines,
)
from nmt_core.files.output import (
    DISK_FULL,
    PARTIAL,
    beside,
    is_written_through,
    open_output,
    partial_output,
)
from nmt_core.files.reading import file_digest, open_input
from nmt_core.files.temporary import readable_again

__all__ = [
    "DISK_FULL",
    "PARTIAL",
    "InputFile",
    "NamedInput",
    "OutputDirectory",
    "OutputFile",
    "beside",
    "check_files",
    "decode_lines",
    "file_digest",
    "is_written_through",
    "open_input",
    "open_output",
    "overwritten",
    "pack",
    "packing_of",
    "partial_output",
    "read_beginning",
    "read_blocks",
    "read_lines",
    "read_parallel_lines",
    "read_text_lines",
    "readable_again",
    "unequal_lines",
    "write_lines",
]
