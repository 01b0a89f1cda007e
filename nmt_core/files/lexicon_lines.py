"""Lines of a lexicon, as Moses' ``train-model.perl`` writes them: ``generated given p(generated | given)``.

In ``lex.f2e`` the generated word is of the target language, in ``lex.e2f`` of the source language.
Lines come in no order; either word may be ``NULL``, which stands for what a word without alignment is aligned to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.files import read_lines

NULL = "NULL"
_SHOWN = 80


class LexiconLine(NamedTuple):
    """p(generated | given)."""

    generated: bytes
    given: bytes
    probability: float


def read_lexicon_lines(path: str) -> Iterator[LexiconLine]:
    """The lines of a file, plain or compressed (gzip, xz, zstd).

    Raises InputError, naming the line, for a line that is not two words and a probability, and for a file
    without lines.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        yield _parse(line, path=path, number=number)
    if not number:
        raise InputError(path, "is empty; expected a lexicon: 'word word probability' in each line")


def _parse(line: bytes, *, path: str, number: int) -> LexiconLine:
    fields = line.replace(b"\t", b" ").split(b" ")
    try:
        generated, given, value = [field for field in fields if field]
        probability = float(value)
    except ValueError:
        shown = line[:_SHOWN].decode("utf-8", "replace")
        problem = f"expected 'word word probability' as in Moses' lex.e2f, not '{shown}'"
        raise InputError(path, problem, line=number) from None
    if not 0.0 <= probability <= 1.001:
        raise InputError(path, f"{probability} is not a probability; is the lexicon in logarithms?", line=number)
    return LexiconLine(generated, given, probability)
