"""What the learning rate is multiplied with: warm-up, and the schedules of the papers.

A function of the number of the update and of the epochs behind it, so that it needs no state of its own.
"""

from __future__ import annotations

import math

from nmt_core.training.config import TrainingConfig


def rate_factor(config: TrainingConfig, *, update: int, epochs: float) -> float:
    """The factor for update number ``update`` (from 1), before which ``epochs`` epochs (1.5: one and a half) are over.

    Warm-up rises in a straight line and meets the schedule at update ``warmup``.
    """
    rising = min(1.0, update / config.warmup) if config.warmup else 1.0
    return rising * _falling(config, update, epochs)


def _falling(config: TrainingConfig, update: int, epochs: float) -> float:
    """Halving: Luong et al. 2015; inverse square root: Vaswani et al. 2017, section 5.3, without its warm-up."""
    beyond = (epochs - config.decay_after) / config.decay_every
    match config.schedule:
        case "constant":
            return 1.0
        case "inverse-sqrt":
            first = max(config.warmup, 1)
            return math.sqrt(first / max(update, first))
        case "exponential":
            return float(config.decay ** max(beyond, 0.0))
        case "halving":
            return float(config.decay ** (math.floor(beyond + 1e-9) + 1)) if beyond > -1e-9 else 1.0
