"""The work of `smt-bridge build-lm`: n-gram models of a text, in ARPA format.

Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3; Heafield et al. 2013).

Notation of Heafield et al.: a(w_1^n) is the *adjusted count*: the count itself for the highest order
and for n-grams that begin with ``<s>``, the number of different words to the left otherwise. With
t_k the number of n-grams of adjusted count k,

    D_k     = k - (k + 1) t_1 t_{k+1} / ((t_1 + 2 t_2) t_k)        for k = 1, 2, 3 (and above)
    u(w|c)  = (a(c w) - D(a(c w))) / sum_x a(c x)
    b(c)    = sum_x D(a(c x)) / sum_x a(c x)
    p(w|c)  = u(w|c) + b(c) p(w|c without its first word),         p(w|) = u(w) + b() / |V|

where V counts ``<unk>`` and ``</s>`` but not ``<s>``. The n-grams of an order are numbered; each knows
the number of its first and of its last n - 1 words, so that every sum is one ``bincount``.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.files import open_output, read_lines
from smt_bridge.errors import BridgeError

UNKNOWN, BEGIN, END = b"<unk>", b"<s>", b"</s>"
SPECIAL = (UNKNOWN, BEGIN, END)
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Text:
    """Words as ids; ``ids`` has every sentence between ``<s>`` and ``</s>``, one behind the other."""

    words: Sequence[bytes]
    ids: Ints


@dataclass(frozen=True)
class Order:
    """The n-grams of one length: number of the first n - 1 words, last word, probability.

    ``log10_backoff`` is that of the n-gram as a context (0 where nothing follows it; None in the highest order).
    """

    prefix: Ints
    last: Ints
    log10_probability: Floats
    log10_backoff: Floats | None


@dataclass(frozen=True)
class _Ngrams:
    """The distinct n-grams of one length, before smoothing; ``at`` numbers them by text position (-1: none)."""

    prefix: Ints
    suffix: Ints
    last: Ints
    counts: Ints
    begins: NDArray[np.bool_]
    at: Ints


def read_text(lines: Iterable[Sequence[bytes]]) -> Text:
    """Number the words of tokenised lines. Raises BridgeError for a text without lines."""
    ids: dict[bytes, int] = {word: number for number, word in enumerate(SPECIAL)}
    flat: list[int] = []
    blocks: list[Ints] = []
    for words in lines:
        flat.append(BEGIN_ID)
        flat += [ids.setdefault(word, len(ids)) for word in words]
        flat.append(END_ID)
        if len(flat) > 1 << 20:
            blocks.append(np.asarray(flat, dtype=np.int64))
            flat = []
    blocks.append(np.asarray(flat, dtype=np.int64))
    every = np.concatenate(blocks)
    if len(ids) == len(SPECIAL):
        raise BridgeError("the text has no words; give tokenised text, a sentence a line, on standard input")
    return Text(list(ids), every)


def estimate(text: Text, order: int, *, fallback: Sequence[float] | None = None) -> list[Order]:
    """The smoothed model, lowest order first; unigram i is word i.

    ``fallback`` are the discounts for counts 1, 2 and 3 of an order whose own cannot be estimated.
    Raises BridgeError when that is needed and not given.
    """
    every = _count(text, order)
    adjusted = _adjust(every)
    lower: Floats | None = None
    orders: list[Order] = []
    for number, (ngrams, counts) in enumerate(zip(every, adjusted, strict=True), start=1):
        discounts = _discounts(counts, number, fallback)
        contexts = 1 if number == 1 else len(every[number - 2].counts)
        total = np.bincount(ngrams.prefix, weights=counts, minlength=contexts)
        taken = discounts[np.minimum(counts, 3)]
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.bincount(ngrams.prefix, weights=taken, minlength=contexts) / total
        if number > 1:
            backoff = np.log10(np.where(np.isnan(left), 1.0, left))  # 1 where nothing follows
            orders[-1] = replace(orders[-1], log10_backoff=backoff)
        below = np.full(len(counts), 1.0 / (len(text.words) - 1)) if lower is None else lower[ngrams.suffix]
        probability = (counts - taken) / total[ngrams.prefix] + left[ngrams.prefix] * below
        if number == 1:
            probability[BEGIN_ID] = 1.0  # never predicted; ARPA files say so with log10 p = 0
        lower = probability
        orders.append(Order(ngrams.prefix, ngrams.last, np.log10(probability), None))
    return orders


def _count(text: Text, order: int) -> list[_Ngrams]:
    """The distinct n-grams of every length with their counts."""
    ids, size = text.ids, len(text.words)
    zeros = np.zeros(size, dtype=np.int64)
    words = np.arange(size)
    every = [_Ngrams(zeros, zeros, words, np.bincount(ids, minlength=size), words == BEGIN_ID, ids)]
    for _ in range(1, order):
        shorter = every[-1]
        first, second = shorter.at[:-1], ids[len(ids) - len(shorter.at) + 1 :]
        inside = (first >= 0) & (second != BEGIN_ID)
        keys = first[inside] * size + second[inside]
        distinct, where, numbers, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        position = np.flatnonzero(inside)[where]
        at = np.full(len(first), -1, dtype=np.int64)
        at[inside] = numbers
        prefix = distinct // size
        every.append(_Ngrams(prefix, shorter.at[position + 1], distinct % size, counts, shorter.begins[prefix], at))
    return every


def _adjust(every: Sequence[_Ngrams]) -> list[Ints]:
    """Adjusted counts of every order (Heafield et al. 2013, section 3.2)."""
    adjusted = [
        np.where(lower.begins, lower.counts, np.bincount(higher.suffix, minlength=len(lower.counts)))
        for lower, higher in itertools.pairwise(every)
    ]
    adjusted.append(every[-1].counts.copy())
    adjusted[0][[UNKNOWN_ID, BEGIN_ID]] = 0
    return adjusted


def _discounts(counts: Ints, order: int, fallback: Sequence[float] | None) -> Floats:
    """D_0 = 0, D_1, D_2 and D_3 (Chen and Goodman 1998, equation 26)."""
    t = np.bincount(np.minimum(counts, 5), minlength=6)[:5].astype(float)
    if t[1:4].all():
        y = t[1] / (t[1] + 2 * t[2])
        found = np.array([0.0, *(k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3))])
        if (found >= 0).all() and (found <= np.arange(4)).all():
            return found
    if fallback is None:
        raise BridgeError(
            f"the text is too small or too regular to estimate the discounts of {order}-grams; "
            "give more text, a lower --order, or --discount-fallback"
        )
    return np.array([0.0, *fallback])


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
