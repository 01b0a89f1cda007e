"""The page about a reranking: how much better, by which features, which sentences, and why."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from nmt_core.base.errors import InputError
from nmt_core.base.interfaces import PairScorer
from nmt_core.base.messages import counted
from nmt_core.files.small import read_json
from smt_bridge.metrics.by_length import PartScore
from smt_bridge.metrics.metric import as_reported
from smt_bridge.metrics.significance import SystemScore
from smt_bridge.moses.weights import Weights
from smt_bridge.report import charts
from smt_bridge.report.changes import all_section, changes_section
from smt_bridge.report.judge import Judgement
from smt_bridge.report.page import page, pairs, section, table, text
from smt_bridge.report.sentences import Sentence, differences

_MOST_BARS = 60  # of weights, where there are sparse features by the thousand


def reranking_page(
    sentences: Sequence[Sentence],
    judgement: Judgement,
    weights: Weights,
    *,
    tuning: Mapping[str, Any] | None = None,
    scorer: PairScorer | None = None,
    signatures: Mapping[str, str] | None = None,
    subtitle: str = "",
) -> str:
    """The whole page. ``tuning`` is what ``tune --report`` wrote; ``scorer`` adds words' scores and attention."""
    parts = [
        _scores(sentences, judgement),
        _weights(sentences, weights, tuning),
        _ablation(tuning),
        _by_length(judgement.by_length),
        changes_section(sentences, weights, scorer),
        all_section(sentences),
        _columns(signatures),
    ]
    return page("What reranking did", subtitle, [part for part in parts if part])


def _scores(sentences: Sequence[Sentence], judgement: Judgement) -> str:
    """A row for each system alone, and for the choice."""
    metrics = judgement.comparisons
    columns = ["system", *(cell for metric in metrics for cell in (metric.metric, "p"))]
    rows = []
    for place, system in enumerate(metrics[0].systems):
        cells = [system.system]
        for one in (metric.systems[place] for metric in metrics):
            cells += [f"{one.score:.2f} ± {one.interval.half_width:.2f}", _p_value(one)]
        rows.append(cells)
    best = metrics[0].best.system
    changes = ", ".join(f"{metric.metric} {metric.change:+.2f}" for metric in metrics)
    changed = sum(sentence.chosen != 0 for sentence in sentences)
    gains = [one.gain for one in sentences]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    bounds = (
        f"The best choice that these lists allow, sentence by sentence, would have BLEU {judgement.oracle.bleu:.2f}; a"
        f" choice at random {judgement.chance.mean:.2f}. Another entry than the first was chosen for {changed:,} of"
        f" {counted(len(sentences), 'sentence')}."
        f" Sentence BLEU is higher for {better}, lower for {worse}, the same for {len(sentences) - better - worse}."
    )
    signed = "".join(f'<p class="signature">{text(one.metric)}: {text(one.signature)}</p>' for one in metrics)
    remark = (
        f"± is half of the 95 % confidence interval, p is that of the difference from {best}, the best system alone"
        " (by BLEU); both by bootstrap."
    )
    return section(
        "The systems alone, and reranked",
        table(columns, rows),
        f"<p>{text(f'Reranked against {best}: {changes}.')}</p>",
        f'<p class="faint">{text(remark)}</p>',
        f"<p>{text(bounds)}</p>",
        signed,
    )


def _p_value(one: SystemScore) -> str:
    return "" if one.p_value is None else f"{one.p_value:.4f}"


def _weights(sentences: Sequence[Sentence], weights: Weights, tuning: Mapping[str, Any] | None) -> str:
    runs = [run["weights"] for run in (tuning or {}).get("runs", [])]
    spreads = _spreads(sentences)
    entries = []
    for name, values in weights.items():
        for place, value in enumerate(values):
            spread = spreads.get((name, place), 0.0)
            label = f"{name}{f'.{place}' if len(values) > 1 else ''}  {value:.3g}"
            seen = [run[name][place] * spread for run in runs if name in run and place < len(run[name])]
            entries.append(charts.Bar(label, value * spread, statistics.stdev(seen) if len(seen) > 1 else 0.0))
    remark = "Each weight, and as a bar the weight times how far its feature moved where the choice changed."
    if len(entries) > _MOST_BARS:
        remark += f" Of {len(entries)} weights the {_MOST_BARS} with the longest bars."
        kept = sorted(range(len(entries)), key=lambda place: -abs(entries[place].value))[:_MOST_BARS]
        entries = [entries[place] for place in sorted(kept)]
    if tuning:
        metric, held = tuning["metric"], tuning.get("cross_validation")
        remark += (
            f" {tuning['tuner'].upper()} on {metric.upper()}, {counted(len(runs), 'run')}: mean"
            f" {as_reported(tuning['mean'], metric):.2f}, standard deviation {tuning['deviation']:.2f} on the tuning"
            " set. Whiskers are the deviation between runs."
        )
        if held:
            inside, outside = (as_reported(held[name], metric) for name in ("tuned", "held_out"))
            remark += f" Cross-validation: {inside:.2f} where it was tuned, {outside:.2f} where it was not."
    return section("Weights", charts.bars(entries, title="weight times spread of every feature"), remark=remark)


def _spreads(sentences: Sequence[Sentence]) -> dict[tuple[str, int], float]:
    """Root mean square of the difference between the first entry and the chosen one, by feature and component."""
    squares: dict[tuple[str, int], float] = {}
    changed = [one for one in sentences if one.chosen != 0]
    for one in changed:
        for name, values in differences(one).items():
            for place, difference in enumerate(values):
                squares[name, place] = squares.get((name, place), 0.0) + difference**2
    return {key: (total / len(changed)) ** 0.5 for key, total in squares.items()}


def _ablation(tuning: Mapping[str, Any] | None) -> str:
    ablation = (tuning or {}).get("ablation")
    if not tuning or not ablation:
        return ""
    remark = "How much of the tuning set's score is lost when a feature is left out and the others are tuned again."
    losses = tuning.get("ablation_loss")
    if losses:
        entries = [charts.Bar(name, loss["mean"], loss["deviation"]) for name, loss in losses.items()]
        runs = counted(len(tuning["runs"]), "run")
        remark += f" The mean of {runs}, compared seed by seed; whiskers are the standard deviation."
    else:  # of a report that was written before there was one
        entries = [charts.Bar(name, tuning["score"] - score) for name, score in ablation.items()]
    entries.sort(key=lambda bar: -bar.value)
    chart = charts.bars(entries, title="loss without the feature", signed_colours=True)
    return section("What each feature is worth", chart, remark=remark)


def _by_length(parts: Sequence[PartScore]) -> str:
    names = [part.name for part in parts]
    before = charts.Line("first choice", [part.before for part in parts])
    after = charts.Line("reranked", [part.after for part in parts])
    chart = charts.lines(names, before, after, title="BLEU by length", unit="BLEU")
    counts = table(("source words", *names), [("sentences", *(part.sentences for part in parts))])
    return section("BLEU by length of the source", chart, counts, remark="Corpus BLEU of the sentences in each bin.")


def _columns(signatures: Mapping[str, str] | None) -> str:
    if not signatures:
        return ""
    entries = [(name, f'<span class="signature">{text(value)}</span>') for name, value in signatures.items()]
    return section("What the columns are", pairs(entries), remark="From the record beside the list.")


@dataclass(frozen=True)
class _Run:
    weights: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class _Folds:
    tuned: float
    held_out: float


@dataclass(frozen=True)
class _Loss:
    mean: float
    deviation: float


@dataclass(frozen=True)
class _Tuning:
    """What the page reads of a report of ``tune``."""

    tuner: str
    metric: str
    mean: float
    deviation: float
    score: float
    runs: Sequence[_Run]
    cross_validation: _Folds | None = None
    ablation: Mapping[str, float] | None = None
    ablation_loss: Mapping[str, _Loss] | None = None


def read_tuning(path: str) -> dict[str, Any]:
    """What ``tune --report`` wrote; raises InputError when it is something else."""
    content = read_json(path)
    try:
        TypeAdapter(_Tuning).validate_python(content)
    except ValidationError as error:
        raise InputError(
            path, "is not a report of `smt-bridge tune --report`; leave --tuning out, or tune again"
        ) from error
    return dict(content)
