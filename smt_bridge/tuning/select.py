"""Forward selection of features: those that held-out sentences gain from, found by cross-validation.

A thousand sentences cannot set thirty weights: each more raises the score of what is tuned on and, from some
point, lowers that of other sentences. Selection begins with one feature and adds, one at a time, the feature
(all its values at once) that raises the score of the held-out folds most, until none does by ``least_gain``.
Every fold has weights of its own, and goes on from those it had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import WiringError
from smt_bridge.tuning.pool import Floats, NbestPool
from smt_bridge.tuning.tune import TUNERS, TuningOptions, split

_RESTARTS = 0  # per trial; the weights of the features in use are the start


class Chosen(NamedTuple):
    """A feature that was added, and the score of the held-out folds with it and all before it."""

    name: str
    held_out: float


class Selection(NamedTuple):
    """The chosen features in the order in which they were added, and those left out."""

    chosen: tuple[Chosen, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen features."""
        return tuple(step.name for step in self.chosen)

    def as_json(self) -> dict[str, Any]:
        """For the report of tuning."""
        return {"chosen": [step._asdict() for step in self.chosen], "left_out": list(self.left_out)}


class _Trial(NamedTuple):
    held_out: float
    weights: list[Floats]


def select_features(
    pool: NbestPool,
    options: TuningOptions,
    *,
    tuner: str = "mert",
    folds: int = 5,
    least_gain: float = 0.02,
    begin_with: Sequence[str] = (),
    on_step: Callable[[Chosen], None] = lambda step: None,
) -> Selection:
    """Choose among ``options.features`` (None: all); ``begin_with`` are in from the beginning.

    ``on_step`` is called with each choice. ``least_gain`` is in the metric's units (BLEU: 0..100). Raises
    WiringError for unknown names and where there are fewer than two sentences.
    """
    names = np.array([column.name for column in pool.columns])
    waiting = list(dict.fromkeys(_varying(pool) if options.features is None else options.features))
    unknown = [name for name in (*waiting, *begin_with) if name not in names]
    if unknown:
        raise WiringError(f"the list has no feature {', '.join(unknown)}; it has {', '.join(dict.fromkeys(names))}")
    parts = list(split(pool, folds))
    chosen: list[Chosen] = []
    weights = [np.zeros(len(names)) for _ in parts]
    first = list(begin_with)
    while waiting:
        tried = {name: _try(parts, weights, names, [*(step.name for step in chosen), name], options, tuner)
                 for name in ([first[0]] if first else waiting)}  # fmt: skip
        best = max(tried, key=lambda name: tried[name].held_out)
        if chosen and not first and tried[best].held_out < chosen[-1].held_out + least_gain:
            break
        first = first[1:]
        chosen.append(Chosen(best, tried[best].held_out))
        weights = tried[best].weights
        waiting = [name for name in waiting if name != best]
        on_step(chosen[-1])
    return Selection(tuple(chosen), tuple(waiting))


def _varying(pool: NbestPool) -> list[str]:
    """The names of the dense columns that differ between hypotheses."""
    varying = pool.varying()
    return [column.name for place, column in enumerate(pool.columns[: pool.dense]) if varying[place]]


def _try(
    parts: Sequence[tuple[NbestPool, NbestPool]],
    weights: Sequence[Floats],
    names: npt.NDArray[np.str_],
    used: Sequence[str],
    options: TuningOptions,
    tuner: str,
) -> _Trial:
    """Tune the features in use in every fold; the score of what the folds held out."""
    tuned = np.isin(names, used)
    held_out = np.zeros(parts[0][0].metric.columns, dtype=np.int64)
    few = options._replace(restarts=min(options.restarts, _RESTARTS))
    found = []
    for (inside, outside), before in zip(parts, weights, strict=True):
        start = before if before.any() else tuned / tuned.sum()
        best = TUNERS[tuner](inside, start, tuned, few)
        held_out += outside.best_statistics(best.weights)
        found.append(best.weights)
    return _Trial(float(parts[0][0].metric.score(held_out)), found)
