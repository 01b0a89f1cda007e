"""BLEU, chrF and TER of two systems with sacrebleu: signatures, confidence intervals and a paired test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

METRICS = ("BLEU", "chrF", "TER")
_BOOTSTRAPS = 1000  # sacrebleu's default for confidence intervals


class Interval(NamedTuple):
    """A 95 % confidence interval from bootstrap resampling (Koehn 2004)."""

    mean: float
    half_width: float


class Comparison(NamedTuple):
    """One metric before and after; ``p_value`` is None without a test, ``signature`` is sacrebleu's.

    TER is an error rate: lower is better. The intervals are None without a test.
    """

    metric: str
    before: float
    after: float
    p_value: float | None
    signature: str
    before_interval: Interval | None = None
    after_interval: Interval | None = None

    def __str__(self) -> str:
        test = "" if self.p_value is None else f", p = {self.p_value:.4f}"
        scores = [
            f"{score:.2f}" + (f" (95 % within ±{interval.half_width:.2f})" if interval else "")
            for score, interval in ((self.before, self.before_interval), (self.after, self.after_interval))
        ]
        change = self.after - self.before
        return f"{self.metric} {scores[0]} -> {scores[1]} ({change:+.2f}{test}) {self.signature}"


def sacrebleu_metric(name: str, *, tokenize: str) -> Any:
    """Sacrebleu's metric ``BLEU``, ``chrF`` or ``TER``; the tokeniser is that of BLEU."""
    import sacrebleu

    if name == "BLEU":
        return sacrebleu.BLEU(tokenize=tokenize, force=True)
    return sacrebleu.CHRF() if name == "chrF" else sacrebleu.TER()


def compare(
    before: Sequence[str],
    after: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str,
    test: str,
    samples: int = 0,
    metrics: Sequence[str] = ("BLEU", "chrF"),
) -> list[Comparison]:
    """Compare two outputs, line by line parallel to each of ``references`` (one sequence per reference file).

    ``test`` is "bs" (paired bootstrap, Koehn 2004), "ar" (approximate randomisation, Riezler and Maxwell 2005)
    or "none"; ``samples`` 0 takes sacrebleu's number. Texts that look tokenised are meant to be when ``tokenize``
    is "none".
    """
    judges = {name: sacrebleu_metric(name, tokenize=tokenize) for name in metrics}
    if test == "none":
        return [_scored(judge, before, after, references, bootstraps=1) for judge in judges.values()]
    from sacrebleu.significance import PairedTest

    systems: list[tuple[str, Sequence[str]]] = [("before", before), ("after", after)]
    signatures, table = PairedTest(systems, judges, references, test_type=test, n_samples=samples)()
    found = [_comparison(name, table[name], str(signature)) for name, signature in signatures.items()]
    if test == "bs":
        return found
    scored = [_scored(judge, before, after, references, bootstraps=_BOOTSTRAPS) for judge in judges.values()]
    return [
        comparison._replace(before_interval=other.before_interval, after_interval=other.after_interval)
        for comparison, other in zip(found, scored, strict=True)
    ]


def _scored(
    judge: Any, before: Sequence[str], after: Sequence[str], references: Sequence[Sequence[str]], *, bootstraps: int
) -> Comparison:
    """Without a test, but with intervals where ``bootstraps`` is above 1."""
    first, second = (judge.corpus_score(texts, references, n_bootstrap=bootstraps) for texts in (before, after))
    intervals = [
        Interval(float(score._mean), float(score._ci)) if bootstraps > 1 else None for score in (first, second)
    ]
    return Comparison(first.name, first.score, second.score, None, str(judge.get_signature()), *intervals)


def _comparison(name: str, results: Sequence[Any], signature: str) -> Comparison:
    """Sacrebleu counts only larger differences than the one found, so that none at all would get the smallest p."""
    before, after = results
    p_value = 1.0 if before.score == after.score else after.p_value
    intervals = [
        None if result.mean is None else Interval(float(result.mean), float(result.ci)) for result in (before, after)
    ]
    return Comparison(name, before.score, after.score, p_value, signature, *intervals)
