"""BLEU from its sufficient statistics (Papineni et al. 2002, section 2), to the last digit as sacrebleu has it.

The statistics of a hypothesis are ten counts; those of a corpus are their sum. That is what lets a
tuner swap one hypothesis of thousands and know the new BLEU at once.

Shapes: S sentences with N hypotheses each; columns 0-3 matches of 1- to 4-grams, 4-7 their totals, 8 system length, 9
reference length (of several references the closest, of two equally close the shorter).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU

ORDER = 4
COLUMNS = 2 * ORDER + 2
SYSTEM_LENGTH = 2 * ORDER
REFERENCE_LENGTH = 2 * ORDER + 1

Counts = npt.NDArray[np.int64]
Tokenize = Callable[[str], str]


def bleu_counts(
    references: Sequence[str], hypotheses: Sequence[str], tokenize: Tokenize, prepare: Tokenize | None = None
) -> Counts:
    """The counts (N, 10) of hypotheses of a sentence against its references.

    ``tokenize`` is any function from text to text with spaces between the tokens, such as one of sacrebleu's
    tokenisers; ``prepare`` is done to hypotheses before it (a detokeniser where references are plain text). Every
    distinct hypothesis is tokenised and counted once.
    """
    lengths: list[int] = []
    limits: dict[tuple[str, ...], int] = {}
    for reference in references:
        words = tokenize(reference.rstrip()).split()
        lengths.append(len(words))
        for ngram, count in _count_ngrams(words).items():
            limits[ngram] = max(count, limits.get(ngram, 0))
    known = {
        text: _counts(tokenize((prepare(text) if prepare else text).rstrip()).split(), limits, lengths)
        for text in dict.fromkeys(hypotheses)
    }
    return np.array([known[text] for text in hypotheses], dtype=np.int64).reshape(-1, COLUMNS)


def _counts(words: Sequence[str], limits: Mapping[tuple[str, ...], int], lengths: Sequence[int]) -> tuple[int, ...]:
    """The counts of a hypothesis; an n-gram counts at most ``limits`` times."""
    length = len(words)
    matches = [0] * ORDER
    for ngram, count in _count_ngrams(words).items():
        limit = limits.get(ngram)
        if limit is not None:
            matches[len(ngram) - 1] += count if count < limit else limit
    totals = [max(0, length - order) for order in range(ORDER)]
    closest = min(lengths, key=lambda other: (abs(other - length), other))
    return (*matches, *totals, length, closest)


def _count_ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for order in range(1, ORDER + 1):
        counts.update(zip(*(words[start:] for start in range(order)), strict=False))
    return counts


def bleu(statistics: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Corpus BLEU in 0..100 of summed statistics (..., 10); one number per leading index.

    Precisions without a match are smoothed as sacrebleu does by default ("exp", as in mteval-v13a);
    a corpus without any match has 0.
    """
    counts = np.asarray(statistics, dtype=np.float64)
    matches, totals = counts[..., :ORDER], counts[..., ORDER : 2 * ORDER]
    precisions = _smoothed(matches, totals)
    with np.errstate(divide="ignore"):
        mean_log = np.log(precisions).mean(axis=-1)
    scores = 100.0 * _brevity_penalty(counts) * np.exp(mean_log)
    return np.where(matches.any(axis=-1), scores, 0.0)


def bleu_plus_one(rows: Counts) -> npt.NDArray[np.float64]:
    """BLEU+1 in 0..100 of each row (Lin and Och 2004): one added to matches and totals of the orders above the first.

    A hypothesis without a matching word has 0.
    """
    smoothed = rows.astype(np.float64)
    smoothed[..., 1:ORDER] += 1
    smoothed[..., ORDER + 1 : 2 * ORDER] += 1
    return np.where(rows[..., 0] > 0, bleu(smoothed), 0.0)


def _smoothed(matches: npt.NDArray[np.float64], totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Precisions; the k-th order without a match counts as 2^-k matches."""
    missing = matches == 0
    if missing.any():
        halvings = np.cumsum(missing, axis=-1)
        matches = np.where(missing, 0.5**halvings, matches)
    usable = totals > 0
    precisions: npt.NDArray[np.float64] = np.where(usable, matches / np.where(usable, totals, 1.0), 0.0)
    return precisions


def _brevity_penalty(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    system, reference = counts[..., SYSTEM_LENGTH], counts[..., REFERENCE_LENGTH]
    safe = np.where(system > 0, system, 1.0)
    penalty: npt.NDArray[np.float64] = np.where(system > 0, np.exp(np.minimum(0.0, 1.0 - reference / safe)), 0.0)
    return penalty


def sacrebleu_tokenizer(name: str) -> Tokenize:
    """Return sacrebleu's tokeniser ``name`` (``none``, ``13a``, ``intl``, ``char``...)."""
    metric: Any = BLEU(tokenize=name)
    tokenizer: Tokenize = metric.tokenizer
    return tokenizer
