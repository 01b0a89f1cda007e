"""Lines of a table of phrases or rules one by one: what is wrong with them, and their scores in normal form.

Phrases of hierarchical and syntax rules have words, non-terminals, and a label at the end of each side::

    der [X][X] [X] ||| the [X][X] [X] ||| 0.5 0.25 ||| 0-0 1-1
    kauft [X][NP-SB] [X] ||| [X][NP-SB] buys [S] ||| 0.5 0.25 ||| 0-1 1-0

As Moses reads them (``Phrase::CreateFromString`` of its ``moses/Phrase.cpp``): what begins with [ and ends in ] is no
word. At the end of a side it is the label of the left-hand side, elsewhere a non-terminal with two labels, those of
the source and of the target. ``<s>`` and ``</s>``, in the rules of a glue grammar, are the ends of the sentence.

>>> rule_symbols(b"der [X][X] Hund [X]")
[b'der', None, b'Hund']
>>> rule_words(b" <s> [X][S] der [X][X] Hund [S] ")
b'der Hund'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import fsum, isfinite
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import BLANKS, SEPARATOR, split_tokens

SENTENCE_ENDS = (b"<s>", b"</s>")
_LABEL = re.compile(rb"\[[^ \t\[\]]+\]")


def ends_in_label(phrase: bytes) -> bool:
    """Whether the last token is like [X]."""
    if b"]" not in phrase:
        return False
    words = phrase.rstrip(BLANKS).replace(b"\t", b" ").rsplit(b" ", 1)
    return _LABEL.fullmatch(words[-1]) is not None


def is_non_terminal(token: bytes) -> bool:
    """Whether it is written like [X][Y]."""
    return token.startswith(b"[") and token.endswith(b"]") and b"][" in token[1:-1]


def rule_symbols(phrase: bytes) -> list[bytes | None]:
    """The words of one side, with None for every non-terminal. Raises ValueError for a phrase that is no rule's."""
    if not ends_in_label(phrase):
        raise ValueError("has no label such as [X] at the end of a side, as the rules in the first lines have")
    return [_symbol(token) for token in split_tokens(phrase)[:-1]]


def _symbol(token: bytes) -> bytes | None:
    if not (token.startswith(b"[") and token.endswith(b"]")):
        return token
    if is_non_terminal(token):
        return None
    shown = token[:40].decode("utf-8", "replace")
    raise ValueError(f"`{shown}` has one label, where Moses wants the two of a non-terminal, such as [X][X]")


def rule_words(phrase: bytes) -> bytes:
    """The words of one side as a model reads them, without non-terminals and ends of the sentence.

    Raises ValueError for a phrase that is no rule's.
    """
    return b" ".join(symbol for symbol in rule_symbols(phrase) if symbol is not None and symbol not in SENTENCE_ENDS)


_TREE = re.compile(rb"[ \t]*\[[^ \t\]]+[ \t].*\][ \t]*")
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
EXPECTED = "expected `source ||| target ||| scores`, perhaps with more fields"
SOURCE, TARGET, SCORES = 0, 1, 2
LOOKED_AT = 100  # lines by which the kind of table is recognised
FIELDS = 4  # source, target, scores, and the rest of the line as one
_FEWEST_LINES = 5  # of orientations, before a table counts as one of reordering
_ROUNDING = 0.01  # of probabilities with six digits
Row = list[bytes]
"""Source, target, scores and, where the line goes on, the rest; joined by ``SEPARATOR`` they are the line."""


class Beginning(NamedTuple):
    """What the first lines of a table say of all: how many scores each has, and whether they are rules."""

    scores: int
    rules: bool


class OtherTable(FormatError):
    """Rules in the form of other decoders, which are not read."""


def check_beginning(path: str, lines: Sequence[bytes]) -> Beginning:
    """Look at the first lines of a table: of rules if both sides of all of them end in a label such as [X].

    Raises FormatError when they are not those of a table of phrases or rules.
    """
    rules = are_rules(path, lines)
    beginning = [line.split(SEPARATOR, FIELDS - 1) for line in lines]
    scores = len(_checked_scores(path, 1, beginning[0]))
    if len(beginning) >= _FEWEST_LINES and all(_is_reordering(row) for row in beginning):
        problem = (
            "this looks like a lexical reordering table: source ||| target ||| probabilities of orientations, which"
            " add up to 1; give the phrase table"
        )
        raise FormatError(path, problem, line=1)
    return Beginning(scores, rules)


def are_rules(path: str, lines: Sequence[bytes]) -> bool:
    """Whether the first lines of a table are rules, of which all have labels, or phrases, of which none has a gap.

    Raises FormatError for a mixture, OtherTable for other rules.
    """
    if lines[0].startswith(b"[X] ||| "):
        problem = "this is a Hiero grammar (`[X] ||| ...`); write it as Moses' rules: source ||| target ||| scores"
        raise OtherTable(path, problem, line=1)
    rows = [line.split(SEPARATOR, FIELDS - 1) for line in lines]
    if all(len(row) > SCORES and any(map(_TREE.fullmatch, row[: TARGET + 1])) for row in rows):
        raise OtherTable(path, "these are rules of tree fragments (`[NP [DT the] [NN]]`), which are not read", line=1)
    labelled = [len(row) > SCORES and ends_in_label(row[SOURCE]) and ends_in_label(row[TARGET]) for row in rows]
    gapped = next((number for number, row in enumerate(rows, start=1) if _has_non_terminal(row)), None)
    if gapped is not None and not all(labelled):
        problem = (
            f"has no labels such as [X] at the end of both sides, but line {gapped} has a non-terminal such as [X][X]:"
            " in a table of hierarchical or syntax rules all lines have labels"
        )
        raise FormatError(path, problem, line=labelled.index(False) + 1)
    return all(labelled)


def _has_non_terminal(row: Row) -> bool:
    return any(is_non_terminal(token) for field in row[:SCORES] if b"][" in field for token in split_tokens(field))


def _is_reordering(row: Row) -> bool:
    """Whether a line has orientations alone: msd (3) or mslr (4) of one or two directions, or of both as one (6, 8)."""
    if len(row) != SCORES + 1:
        return False
    tokens = row[SCORES].split()
    if len(tokens) not in (3, 4, 6, 8) or not all(map(_NUMBER.fullmatch, tokens)):
        return False
    numbers = [float(token) for token in tokens]
    size = len(numbers) if len(numbers) < 6 else len(numbers) // 2
    sums = [fsum(numbers[begin : begin + size]) for begin in range(0, len(numbers), size)]
    return all(abs(one - 1.0) < _ROUNDING for one in sums)


def mend_row(path: str, number: int, row: Row, *, scores: int) -> None:
    """Check one line of a table of so many ``scores`` and put its scores into normal form, in place."""
    tokens = _checked_scores(path, number, row)
    if len(tokens) != scores:
        problem = (
            f"has {counted(len(tokens), 'score')}, but the first line has {scores}; Moses needs as many in every line"
        )
        raise FormatError(path, problem, line=number)
    row[SCORES] = _normal_scores(row[SCORES], tokens, last=len(row) < FIELDS)


def _normal_scores(field: bytes, tokens: Sequence[bytes], *, last: bool) -> bytes:
    numbers = b" " + b" ".join(tokens)
    if not last:
        return numbers + b" "
    if field.endswith(b"\r"):
        return numbers + b"\r"
    return numbers + b" " if field.endswith((b" ", b"\t")) else numbers


def _checked_scores(path: str, number: int, row: Row) -> list[bytes]:
    """The numbers of the third field as they stand. Raises FormatError."""
    if len(row) == 1 and not row[0].strip(b" \t\r"):
        raise FormatError(path, f"the line is blank, Moses would stop here; {EXPECTED}", line=number)
    if len(row) <= SCORES:
        raise FormatError(path, f"has {len(row)} of at least 3 fields, Moses would stop here; {EXPECTED}", line=number)
    field = row[SCORES]
    tokens = split_tokens(field[:-1] if len(row) < FIELDS and field.endswith(b"\r") else field)
    if not tokens:
        raise FormatError(path, f"has no scores; {EXPECTED}", line=number)
    for place, token in enumerate(tokens, start=1):
        problem = _problem_with(token)
        if problem:
            shown = token[:40].decode("utf-8", "backslashreplace")
            raise FormatError(path, f"score {place} is `{shown}`, {problem}", line=number)
    return tokens


def _problem_with(token: bytes) -> str:
    if not _NUMBER.fullmatch(token):
        return "not a plain number (an unescaped | in a phrase shifts the fields); Moses would stop here"
    if float(token) < 0.0:
        return "but must not be negative: scores are probabilities, of which Moses takes the logarithm"
    return "" if isfinite(float(token)) else "which is too large"
