"""Text to ARPA."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.files import open_output, read_lines
from smt_bridge.lm.estimate import SPECIAL, Order, estimate, read_text

_BLANKS = bytes.maketrans(b"\0\t\r", b"   ")
_FALLBACK = (0.5, 1.0, 1.5)  # of lmplz
_AT_A_TIME = 100_000  # n-grams that are written together


def build_lm(args: argparse.Namespace) -> int:
    """Build the model."""
    if not 1 <= args.order <= 20:
        raise ConfigError(f"--order {args.order}: expected 1 to 20")
    started = time.perf_counter()
    text = read_text(_tokens(read_lines(args.input), args.input))
    with open_output(args.output) as stream:
        orders = estimate(text, args.order, fallback=_FALLBACK if args.discount_fallback else None)
        write_arpa(stream, text.words, orders)
    say(f"{args.order}-gram model in {time.perf_counter() - started:.1f} s")
    return 0


def _tokens(lines: Iterable[bytes], path: str) -> Iterator[list[bytes]]:
    """Words of every line, cut where ``lmplz`` cuts: at space, tab, carriage return and NUL."""
    for number, line in enumerate(lines, start=1):
        words = [word for word in line.translate(_BLANKS).split(b" ") if word]
        special = next((word for word in words if word in SPECIAL), None)
        if special is not None:
            problem = f"the word {special.decode()} has a meaning of its own; remove it"
            raise InputError(path, problem, line=number)
        yield words


def write_arpa(stream: BinaryIO, words: Sequence[bytes], orders: Sequence[Order]) -> None:
    """Write a model in ARPA format, as KenLM reads it.

    Of every order: log10 probability, tab, words, tab, log10 back-off (but in the highest).
    """
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
            stream.write(b"".join(_arpa_lines(order, texts, slice(start, start + _AT_A_TIME))))
    stream.write(b"\n\\end\\\n")


def _arpa_lines(order: Order, texts: Sequence[bytes], part: slice) -> list[bytes]:
    probabilities = order.log10_probability[part].tolist()
    if order.log10_backoff is None:
        return [b"%.7g\t%s\n" % (value, text) for value, text in zip(probabilities, texts[part], strict=True)]
    backoffs = order.log10_backoff[part].tolist()
    rows = zip(probabilities, texts[part], backoffs, strict=True)
    return [b"%.7g\t%s\t%.7g\n" % row for row in rows]
