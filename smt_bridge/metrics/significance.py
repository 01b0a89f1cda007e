"""Sacrebleu's BLEU, chrF and TER: of several systems with intervals and a paired test, by length, of one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


LENGTH_BOUNDS = (10, 20, 30, 40, 50, 60)


class LengthPart(NamedTuple):
    """The sentences whose lengths ``name`` says (``11-20``), and the corpus scores of two outputs of them."""

    name: str
    sentences: int
    before: float
    after: float


def score_by_length(
    lengths: Sequence[int],
    before: Sequence[str],
    after: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: Any,
) -> list[LengthPart]:
    """Scores of two outputs under a sacrebleu ``metric``, as in Figure 2 of Bahdanau, Cho and Bengio (2015).

    A sentence belongs to the first of ``LENGTH_BOUNDS`` that it does not exceed; parts without sentences are
    left out.
    """
    found = []
    for below, edge in zip((0, *LENGTH_BOUNDS), (*LENGTH_BOUNDS, None), strict=True):
        places = [at for at, size in enumerate(lengths) if max(size, 1) > below and (edge is None or size <= edge)]
        if places:
            there = [[reference[at] for at in places] for reference in references]
            scores = [metric.corpus_score([texts[at] for at in places], there).score for texts in (before, after)]
            name = f"{below + 1}+" if edge is None else f"{below + 1}-{edge}"
            found.append(LengthPart(name, len(places), *map(float, scores)))
    return found


class SentenceScores(NamedTuple):
    """BLEU (smoothed, with effective order), chrF2 and TER of one sentence, in percent; TER is lower when better."""

    bleu: float
    chrf: float
    ter: float


def sentence_scorer(tokenize: str) -> Callable[[str, Sequence[str]], SentenceScores]:
    """A function of a hypothesis and its references; ``tokenize`` is that of BLEU."""
    bleu = sacrebleu.BLEU(tokenize=tokenize, effective_order=True, force=True)
    metrics: tuple[Any, ...] = (bleu, sacrebleu.CHRF(), sacrebleu.TER())

    def score(hypothesis: str, references: Sequence[str]) -> SentenceScores:
        return SentenceScores(*(float(one.sentence_score(hypothesis, references).score) for one in metrics))

    return score
