r"""Reading and writing files the way Unix filters do.

``-`` is standard input or output. gzip, xz and zstd are recognised by their first bytes when reading and by the
names ``*.gz``, ``*.xz`` and ``*.zst`` when writing. Lines end at ``\n`` and nowhere else (other line separators of
Unicode are ordinary characters of a token). A file appears under its final name only when it is complete.
"""

from __future__ import annotations

from nmt_core.files.arguments import (
    Input,
    InputBehind,
    InputFile,
    NamedInput,
    Output,
    OutputFile,
    check_files,
    input_files,
    writes_standard_output,
)
from nmt_core.files.compression import pack, suffix_of
from nmt_core.files.identity import overwritten
from nmt_core.files.lines import (
    decode_lines,
    read_beginning,
    read_blocks,
    read_line_blocks,
    read_lines,
    read_parallel_lines,
    read_text_lines,
    readable_again,
    unequal_lines,
    write_lines,
)
from nmt_core.files.output import PartialOutput, complete_content, open_output, open_uncompressed
from nmt_core.files.reading import ShareRead, file_digest, open_input, packing_of
from nmt_core.files.target import DISK_FULL, is_written_through, made_folder_of

__all__ = [
    "DISK_FULL",
    "Input",
    "InputBehind",
    "InputFile",
    "NamedInput",
    "Output",
    "OutputFile",
    "PartialOutput",
    "ShareRead",
    "check_files",
    "complete_content",
    "decode_lines",
    "file_digest",
    "input_files",
    "is_written_through",
    "made_folder_of",
    "open_input",
    "open_output",
    "open_uncompressed",
    "overwritten",
    "pack",
    "packing_of",
    "read_beginning",
    "read_blocks",
    "read_line_blocks",
    "read_lines",
    "read_parallel_lines",
    "read_text_lines",
    "readable_again",
    "suffix_of",
    "unequal_lines",
    "write_lines",
    "writes_standard_output",
]
