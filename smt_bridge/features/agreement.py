"""The expectation of a metric over a list: what the hypotheses say of one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt_core.errors import ConfigError
from smt_bridge.errors import WiringError
from smt_bridge.features.interface import Candidates
from smt_bridge.features.ngram_overlap import Floats


@dataclass(frozen=True)
class Weighting:
    """How much each hypothesis of a list counts.

    Without a scale all lines count alike. With one, they count as exp(scale * total), which is the
    posterior of a log-linear model over its list (Kumar and Byrne 2004; small scales are flat).
    """

    scale: float | None = None

    @classmethod
    def parse(cls, text: str) -> Weighting:
        """Read ``uniform``, ``posterior`` or ``posterior:SCALE``; raises ConfigError for anything else."""
        kind, _, scale = text.partition(":")
        if kind in ("", "uniform") and not scale:
            return cls()
        try:
            value = float(scale or 1.0)
        except ValueError:
            value = -1.0
        if kind != "posterior" or not 0.0 <= value < float("inf"):
            raise ConfigError(f"'{text}' is not a weighting; expected uniform, posterior or posterior:SCALE")
        return cls(value)

    def __str__(self) -> str:
        return "uniform" if self.scale is None else f"posterior:{self.scale:g}"

    def of(self, group: Candidates) -> Floats:
        """One weight per hypothesis, together 1; raises WiringError when totals are needed and absent."""
        if self.scale is None:
            return np.full(len(group.hypotheses), 1.0 / len(group.hypotheses))
        if group.totals is None:
            raise WiringError("the list has lines without a total, which posterior weights are made of; use uniform")
        scaled = self.scale * np.asarray(group.totals, dtype=np.float64)
        counts = np.exp(scaled - scaled.max())
        weights: Floats = counts / counts.sum()
        return weights


def agreement_with_list(
    group: Candidates, weighting: Weighting, metric: Callable[[Sequence[str]], Floats]
) -> list[tuple[float, ...]]:
    """The expected ``metric`` of every hypothesis, itself among the others; lines of equal text add their weights.

    ``metric`` takes distinct hypotheses to a matrix: the row is scored, the column is the reference.
    """
    if not group.hypotheses:
        return []
    numbers = {text: number for number, text in enumerate(dict.fromkeys(group.hypotheses))}
    of_line = np.array([numbers[text] for text in group.hypotheses])
    weights = np.bincount(of_line, weights=weighting.of(group), minlength=len(numbers))
    expected = metric(list(numbers)) @ weights
    return [(value,) for value in expected[of_line].tolist()]
