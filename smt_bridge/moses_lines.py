"""The fields of a Moses line: bytes between ``|||``, tokens between spaces and tabs.

Nothing else separates: a no-break space, a lone carriage return or a Unicode line separator is part
of its token, and bytes that are not UTF-8 are legal. The separator is the three characters, with or
without blanks around them, wherever they stand.

>>> split_fields(b"das Haus ||| the house ||| 0.5 0.25 ||| 0-0 1-1", at_most=4)
[b'das Haus ', b' the house ', b' 0.5 0.25 ', b' 0-0 1-1']
>>> text_of(b" the  house ")
'the house'
"""

from __future__ import annotations

SEPARATOR = b"|||"
BLANKS = b" \t"


def split_fields(line: bytes, *, at_most: int) -> list[bytes]:
    """Cut a line into ``at_most`` fields, blanks kept; the last one holds the rest of the line as it stands."""
    return line.split(SEPARATOR, at_most - 1)


def split_tokens(field: bytes) -> list[bytes]:
    """The tokens of a field."""
    return [token for token in field.replace(b"\t", b" ").split(b" ") if token]


def has_wide_blanks(field: bytes) -> bool:
    """Whether several blanks, or a tab, stand between two words."""
    field = field.strip(BLANKS)
    return b"  " in field or b"\t" in field


def phrase_of(field: bytes) -> bytes:
    """A phrase as Moses compares it: words with single spaces between."""
    return b" ".join(split_tokens(field)) if has_wide_blanks(field) else field.strip(BLANKS)


def text_of(field: bytes) -> str:
    """A phrase as a model reads it: the same, with bytes that are not UTF-8 replaced."""
    return phrase_of(field).decode("utf-8", "replace")
