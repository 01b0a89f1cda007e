"""BLEU and chrF of two systems with sacrebleu, their signatures, and a paired significance test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

TESTS = ("bs", "ar", "none")


class Comparison(NamedTuple):
    """One metric before and after; ``p_value`` is None without a test, ``signature`` is sacrebleu's."""

    metric: str
    before: float
    after: float
    p_value: float | None
    signature: str

    def __str__(self) -> str:
        test = "" if self.p_value is None else f", p = {self.p_value:.4f}"
        change = self.after - self.before
        return f"{self.metric} {self.before:.2f} -> {self.after:.2f} ({change:+.2f}{test}) {self.signature}"


def compare(
    before: Sequence[str],
    after: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str,
    test: str,
    samples: int = 0,
) -> list[Comparison]:
    """Compare two outputs, line by line parallel to each of ``references`` (one sequence per reference file).

    ``test`` is "bs" (paired bootstrap), "ar" (approximate randomisation) or "none"; ``samples`` 0 takes
    sacrebleu's number. Texts that look tokenised are meant to be when ``tokenize`` is "none".
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True), "chrF": CHRF()}
    if test == "none":
        found = []
        for metric in metrics.values():
            scores = [metric.corpus_score(texts, references) for texts in (before, after)]
            found.append(
                Comparison(scores[0].name, scores[0].score, scores[1].score, None, str(metric.get_signature()))
            )
        return found
    from sacrebleu.significance import PairedTest

    systems: list[tuple[str, Sequence[str]]] = [("before", before), ("after", after)]
    signatures, table = PairedTest(systems, metrics, references, test_type=test, n_samples=samples)()
    return [_comparison(name, table[name], str(signature)) for name, signature in signatures.items()]


def _comparison(name: str, results: Sequence[Any], signature: str) -> Comparison:
    """Sacrebleu counts only larger differences than the one found, so that none at all would get the smallest p."""
    before, after = results
    p_value = 1.0 if before.score == after.score else after.p_value
    return Comparison(name, before.score, after.score, p_value, signature)
