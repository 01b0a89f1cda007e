"""BLEU, chrF and TER of several systems with sacrebleu: signatures, confidence intervals and a paired test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sacrebleu
from sacrebleu.significance import PairedTest

METRICS = ("BLEU", "chrF", "TER")


class Interval(NamedTuple):
    """A 95 % confidence interval from bootstrap resampling (Koehn 2004)."""

    mean: float
    half_width: float


class SystemScore(NamedTuple):
    """The score of a system; ``p_value`` is that of the difference from the best other system, None for this one."""

    system: str
    score: float
    interval: Interval
    p_value: float | None


class Comparison(NamedTuple):
    """The scores of all systems under one metric, and sacrebleu's signature; TER is an error rate: lower is better."""

    metric: str
    systems: tuple[SystemScore, ...]
    signature: str

    @property
    def best(self) -> SystemScore:
        """The single system that the others are compared with."""
        return next(one for one in self.systems if one.p_value is None)

    @property
    def last(self) -> SystemScore:
        """The system that was made of the others."""
        return self.systems[-1]

    @property
    def change(self) -> float:
        """From the best single system to the last."""
        return self.last.score - self.best.score

    def __str__(self) -> str:
        scores = [f"{one.system} {one.score:.2f} (95 % within ±{one.interval.half_width:.2f})" for one in self.systems]
        change = f"{self.change:+.2f} on {self.best.system}, p = {self.last.p_value:.4f}"
        return f"{self.metric}: {', '.join(scores)}; {change}; {self.signature}"


def sacrebleu_metric(name: str, *, tokenize: str) -> Any:
    """Sacrebleu's metric ``BLEU``, ``chrF`` or ``TER``; the tokeniser is that of BLEU."""
    if name == "BLEU":
        return sacrebleu.BLEU(tokenize=tokenize, force=True)
    return sacrebleu.CHRF() if name == "chrF" else sacrebleu.TER()


def compare(
    outputs: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str,
    samples: int = 0,
    metrics: Sequence[str] = METRICS,
) -> list[Comparison]:
    """Compare outputs, line by line parallel to each of ``references`` (one sequence per reference file).

    The last output is made of the others, the single systems. The test is a paired bootstrap (Koehn 2004) against the
    single system of the highest BLEU; ``samples`` 0 takes sacrebleu's number. Texts that look tokenised are meant to be
    when ``tokenize`` is "none".
    """
    bleu = sacrebleu_metric("BLEU", tokenize=tokenize)
    *singles, _ = outputs
    best = max(singles, key=lambda name: bleu.corpus_score(outputs[name], references).score)
    order = [best, *(name for name in outputs if name != best)]
    judges = {name: sacrebleu_metric(name, tokenize=tokenize) for name in metrics}
    systems = [(name, outputs[name]) for name in order]
    signatures, table = PairedTest(systems, judges, references, test_type="bs", n_samples=samples)()
    found = {name: dict(zip(order, table[name], strict=True)) for name in signatures}
    return [
        Comparison(
            metric, tuple(_score(name, found[metric][name], found[metric][best]) for name in outputs), str(signature)
        )
        for metric, signature in signatures.items()
    ]


def _score(name: str, result: Any, baseline: Any) -> SystemScore:
    """Sacrebleu counts only larger differences than the one found, so that none at all would get the smallest p."""
    p_value = 1.0 if result.score == baseline.score and result is not baseline else result.p_value
    return SystemScore(name, result.score, Interval(float(result.mean), float(result.ci)), p_value)
