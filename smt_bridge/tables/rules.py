"""Phrases of hierarchical and syntax rules: words, non-terminals, and a label at the end of each side.

::

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
from collections.abc import Iterator, Sequence

from smt_bridge.moses_lines import BLANKS, split_tokens

SENTENCE_ENDS = (b"<s>", b"</s>")
_LABEL = re.compile(rb"\[[^ \t\[\]]+\]")


def ends_in_label(phrase: bytes) -> bool:
    """Whether the last token is like [X]."""
    words = phrase.rstrip(BLANKS).replace(b"\t", b" ").rsplit(b" ", 1)
    return _LABEL.fullmatch(words[-1]) is not None


def is_non_terminal(token: bytes) -> bool:
    """Whether it is written like [X][Y]."""
    return token.startswith(b"[") and token.endswith(b"]") and b"][" in token[1:-1]


def is_tree_fragment(phrase: bytes) -> bool:
    """Whether it is the tree of a tree-to-string or string-to-tree rule: [NP [DT the] [NN]]."""
    tokens = split_tokens(phrase)
    if len(tokens) < 2 or not tokens[-1].endswith(b"]"):
        return False
    return len(tokens[0]) > 1 and tokens[0].startswith(b"[") and not tokens[0].endswith(b"]")


def rule_symbols(phrase: bytes) -> list[bytes | None]:
    """The words of one side, with None for every non-terminal. Raises ValueError for a phrase that is no rule's."""
    if not ends_in_label(phrase):
        raise ValueError("has no label such as [X] at the end of a side, as the rules in the first lines have")
    return [_symbol(token) for token in split_tokens(phrase)[:-1]]


def _symbol(token: bytes) -> bytes | None:
    if not (token.startswith(b"[") and token.endswith(b"]") and len(token) > 1):
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


def unlinked_rules(sources: Sequence[bytes], targets: Sequence[bytes], alignments: Sequence[bytes]) -> Iterator[int]:
    """The places of rules whose alignment does not link every non-terminal with one of the other side.

    Raises ValueError for a phrase that is no rule's.
    """
    for place, (source, target, alignment) in enumerate(zip(sources, targets, alignments, strict=True)):
        gaps = [
            {str(position).encode() for position, symbol in enumerate(rule_symbols(side)) if symbol is None}
            for side in (source, target)
        ]
        links = [tuple(point.split(b"-", 1)) for point in split_tokens(alignment) if b"-" in point]
        joined = [link for link in links if link[0] in gaps[0] and link[1] in gaps[1]]
        if len(gaps[0]) != len(gaps[1]) or any({link[side] for link in joined} != gaps[side] for side in (0, 1)):
            yield place
