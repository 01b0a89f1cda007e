"""How likely n-grams are to be in a translation, as an n-best list has it (``ngram_posteriors`` is about graphs)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum

from smt_bridge.formats.phrase_graph import Words
from smt_bridge.graphs.ngram_posteriors import BEGIN, END, ORDER


def list_posteriors(
    hypotheses: Sequence[tuple[Words, float]], *, scale: float = 1.0, order: int = ORDER
) -> dict[Words, float]:
    """p(u) of all n-grams up to ``order`` words: the share of the hypotheses that hold u, each exp(scale · total)."""
    best = max((total for _, total in hypotheses), default=0.0)
    weights = [exp(scale * (total - best)) for _, total in hypotheses]
    shares: dict[Words, list[float]] = {}
    for (words, _), weight in zip(hypotheses, weights, strict=True):
        for ngram in _ngrams((BEGIN, *words, END), order):
            shares.setdefault(ngram, []).append(weight)
    whole = fsum(weights)
    return {ngram: min(1.0, fsum(own) / whole) for ngram, own in shares.items()}


def _ngrams(words: Words, order: int) -> set[Words]:
    """Those of a whole sentence, but for its beginning alone."""
    return {words[max(0, end - size) : end] for end in range(2, len(words) + 1) for size in range(1, order + 1)}
