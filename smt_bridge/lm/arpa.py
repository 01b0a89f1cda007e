"""Writing a model in ARPA format, as KenLM reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from smt_bridge.lm.estimate import Order

_AT_A_TIME = 100_000


def write_arpa(stream: BinaryIO, words: Sequence[bytes], orders: Sequence[Order]) -> None:
    """Write n-grams of every order: log10 probability, tab, words, tab, log10 back-off (but in the highest)."""
    stream.write(b"\\data\\\n")
    for number, order in enumerate(orders, start=1):
        stream.write(b"ngram %d=%d\n" % (number, len(order.last)))
    texts: list[bytes] = []
    for number, order in enumerate(orders, start=1):
        last = [words[word] for word in order.last.tolist()]
        texts = (
            last
            if number == 1
            else [b"%s %s" % (texts[prefix], word) for prefix, word in zip(order.prefix.tolist(), last, strict=True)]
        )
        stream.write(b"\n\\%d-grams:\n" % number)
        for start in range(0, len(texts), _AT_A_TIME):
            stream.write(b"".join(_lines(order, texts, slice(start, start + _AT_A_TIME))))
    stream.write(b"\n\\end\\\n")


def _lines(order: Order, texts: Sequence[bytes], part: slice) -> list[bytes]:
    probabilities = order.log10_probability[part].tolist()
    if order.log10_backoff is None:
        return [b"%.7g\t%s\n" % (value, text) for value, text in zip(probabilities, texts[part], strict=True)]
    backoffs = order.log10_backoff[part].tolist()
    rows = zip(probabilities, texts[part], backoffs, strict=True)
    return [b"%.7g\t%s\t%.7g\n" % row for row in rows]
