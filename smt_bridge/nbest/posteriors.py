r"""How likely n-grams are to be in a translation, by an n-best list with totals.

p(u) is the share of the hypotheses that hold the n-gram u, a hypothesis weighing exp(scale · total) (Tromble et al.
2008, section 3; Blackwood, de Gispert and Byrne 2010).
"""

from __future__ import annotations

from math import exp, fsum

from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import split_tokens
from smt_bridge.nbest.entry import NbestList

Words = tuple[bytes, ...]
_BEGIN, _END = b"<s>", b"</s>"


def posteriors_of(found: NbestList, *, path: str, scale: float, order: int) -> dict[Words, float]:
    """p(u) of all n-grams up to ``order`` words, ``<s>`` and ``</s>`` among them.

    Raises FormatError, naming ``path`` and the line, for a hypothesis without a total.
    """
    totals = []
    for entry in found.entries:
        if entry.total is None:
            problem = "has no total, which posteriors are made of; expected id ||| words ||| features ||| total"
            raise FormatError(path, problem, line=entry.line)
        totals.append(entry.total)
    best = max(totals, default=0.0)
    weights = [exp(scale * (total - best)) for total in totals]
    shares: dict[Words, list[float]] = {}
    for entry, weight in zip(found.entries, weights, strict=True):
        for ngram in _ngrams((_BEGIN, *split_tokens(entry.hypothesis), _END), order):
            shares.setdefault(ngram, []).append(weight)
    whole = fsum(weights)
    return {ngram: min(1.0, fsum(own) / whole) for ngram, own in shares.items()}


def _ngrams(words: Words, order: int) -> set[Words]:
    """Those of a whole sentence, but for its beginning alone."""
    return {words[max(0, end - size) : end] for end in range(2, len(words) + 1) for size in range(1, order + 1)}
