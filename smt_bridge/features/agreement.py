"""The expectation of a metric over a list: what the hypotheses say of one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt_core.base.errors import ConfigError
from smt_bridge.errors import WiringError
from smt_bridge.features.interface import Candidates
from smt_bridge.features.ngram_overlap import Floats
from smt_bridge.ordered_sum import ordered_sum


@dataclass(frozen=True)
class Weighting:
    """How much each hypothesis of a list counts.

    ``uniform``: all lines alike. ``posterior``: as exp(scale * total), the posterior of a log-linear model over
    its list (Kumar and Byrne 2004; small scales are flat). ``systems``: of a merged list the mean of each system's
    posterior over what it listed itself, so that a longer list does not outvote a shorter one.
    """

    kind: str = "uniform"
    scale: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Weighting:
        """Read ``uniform``, ``posterior[:SCALE]`` or ``systems[:SCALE]``; raises ConfigError for anything else."""
        kind, _, scale = text.partition(":")
        if kind in ("", "uniform") and not scale:
            return cls()
        try:
            value = float(scale or 1.0)
        except ValueError:
            value = -1.0
        if kind not in ("posterior", "systems") or not 0.0 <= value < float("inf"):
            raise ConfigError(
                f"'{text}' is not a weighting; expected uniform, posterior, posterior:SCALE, systems or systems:SCALE"
            )
        return cls(kind, value)

    def __str__(self) -> str:
        return "uniform" if self.kind == "uniform" else f"{self.kind}:{self.scale:g}"

    def of(self, group: Candidates) -> Floats:
        """One weight per hypothesis, together 1; raises WiringError when totals are needed and absent."""
        if self.kind == "uniform":
            return np.full(len(group.hypotheses), 1.0 / len(group.hypotheses))
        if self.kind == "systems":
            return _mean_of_systems(group, self.scale)
        if group.totals is None:
            raise WiringError("the list has lines without a total, which posterior weights are made of; use uniform")
        return _posterior(self.scale * np.asarray(group.totals, dtype=np.float64))


def _posterior(scaled: Floats) -> Floats:
    counts = np.exp(scaled - scaled.max())
    weights: Floats = counts / ordered_sum(counts)
    return weights


def _mean_of_systems(group: Candidates, scale: float) -> Floats:
    """By the columns ``InS0`` and ``TotalS0`` of ``smt_bridge.nbest.merge``; a system without a list has no say."""
    columns = group.columns or [{}] * len(group.hypotheses)
    systems = [name[2:-1] for name in columns[0] if name.startswith("In") and f"Total{name[2:]}" in columns[0]]
    if not systems:
        raise WiringError(
            "the list has no columns InS0 and TotalS0 of a system S, as `smt-bridge add-features` makes them"
            " of several lists; use uniform or posterior"
        )
    found = []
    for system in systems:
        listed = np.array([row[f"In{system}0"][0] for row in columns]) > 0
        if listed.any():
            totals = np.array([row[f"Total{system}0"][0] for row in columns])
            found.append(_posterior(np.where(listed, scale * totals, -np.inf)))
    weights: Floats = ordered_sum(np.stack(found, axis=-1)) / len(found)
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
    expected = ordered_sum(metric(list(numbers)) * weights)
    return [(value,) for value in expected[of_line].tolist()]
