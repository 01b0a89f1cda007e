"""The lines of a ``moses.ini`` as the decoder reads them: sections, comments, and nothing else.

``#`` begins a comment anywhere, a line beginning with ``[`` begins a section, and what stands before
the first section belongs to none. A section may come several times; its lines add up.

>>> section_lines([b"[weight] # tuned", b"LM0= 0.5 # ln", b"", b"[threads]", b"2"], "weight")
[(2, b'LM0= 0.5')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BLANKS = b" \t\r"


def code_of(line: bytes) -> bytes:
    """The line without its comment and outer blanks."""
    return line.partition(b"#")[0].strip(BLANKS)


def section_name(code: bytes) -> str | None:
    """The name in ``[name]``; None for a line that begins no section."""
    if not code.startswith(b"["):
        return None
    return code[1:].partition(b"]")[0].decode("utf-8", "surrogateescape")


def sections(lines: Iterable[bytes]) -> Iterator[tuple[str, int, bytes]]:
    """Every line that holds a setting: its section ("" before the first), its number from 1, and its code."""
    current = ""
    for number, raw in enumerate(lines, start=1):
        code = code_of(raw)
        name = section_name(code)
        if name is not None:
            current = name
        elif code:
            yield current, number, code


def section_lines(lines: Iterable[bytes], name: str) -> list[tuple[int, bytes]]:
    """The settings of all sections ``[name]`` with the numbers of their lines."""
    return [(number, code) for section, number, code in sections(lines) if section == name]
