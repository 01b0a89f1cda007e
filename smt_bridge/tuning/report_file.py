"""What `smt-bridge tune --report` writes, and the page of `smt-bridge report` shows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from smt_bridge.tuning.held_out import Judged
from smt_bridge.tuning.tune import losses


def as_json(
    judged: Judged, *, tuner: str, metric: str, ablation: Mapping[str, Sequence[float]] | None = None
) -> dict[str, Any]:
    """The report for other programs (docs/tuning.md)."""
    report, validation, comparison = judged.report, judged.validation, judged.comparison
    return {
        "tuner": tuner,
        "metric": metric,
        "weights": _listed(report.weights),
        "score": report.score,
        "score_at_start": report.score_at_start,
        "mean": report.mean,
        "deviation": report.deviation,
        "note": report.note,
        "runs": [{"score": score, "weights": _listed(weights)} for weights, score in report.runs],
        "ridge": judged.ridge,
        "cross_validation": None if validation is None else validation._asdict(),
        "ablation": None if ablation is None else {name: statistics.fmean(each) for name, each in ablation.items()},
        "ablation_loss": None
        if ablation is None
        else {name: loss._asdict() for name, loss in losses(report, ablation).items()},
        "guard": None if comparison is None else comparison.as_json(),
    }


def _listed(weights: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: list(values) for name, values in weights.items()}
