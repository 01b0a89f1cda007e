"""Which weight an n-gram model should have in re-ranking: every weight of a grid, BLEU of what comes first.

The translations are made once; a weight only chooses among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sacrebleu

from nmt_core.base.errors import ConfigError
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import combined_score
from nmt_core.inference.search.config import OutputConfig

_MAX_WEIGHTS = 10_000  # weights of a grid


class Trial(NamedTuple):
    """A weight and the BLEU of the translations it puts first."""

    weight: float
    bleu: float


class Tuning(NamedTuple):
    """All trials, the best of them (of equals the smallest weight), and sacreBLEU's signature."""

    trials: list[Trial]
    best: Trial
    signature: str


def tune_weight(
    lists: Sequence[Sequence[Translation]],
    references: Sequence[str],
    weights: Sequence[float],
    *,
    config: OutputConfig,
    tokenized: bool,
) -> Tuning:
    """Try the weights on lists of translations that have their ``lm_log_prob``.

    ``tokenized`` texts are compared as they are; others are tokenised by sacreBLEU (13a).
    """
    metric = sacrebleu.BLEU(tokenize="none" if tokenized else "13a", force=True)
    known: dict[tuple[str, ...], float] = {}
    trials = []
    for weight in weights:
        texts = tuple(_first(found, weight, config) for found in lists)
        if texts not in known:
            known[texts] = metric.corpus_score(texts, [references]).score
        trials.append(Trial(weight, known[texts]))
    best = max(trials, key=lambda trial: (trial.bleu, -trial.weight))
    return Tuning(trials, best, str(metric.get_signature()))


def _first(found: Sequence[Translation], weight: float, config: OutputConfig) -> str:
    """The text of the best; of equals the earlier."""
    return max(found, key=lambda one: combined_score(one, weight=weight, config=config)).text


def parse_grid(text: str) -> list[float]:
    """``START:STOP:STEP``, both ends counted. Raises ConfigError for anything else."""
    try:
        start, stop, step = (float(part) for part in text.split(":"))
        count = int((stop - start) / step + 1e-9) + 1
    except (ValueError, ZeroDivisionError, OverflowError):
        count = 0
    if not 1 <= count <= _MAX_WEIGHTS or start < 0 or step < 0:
        raise ConfigError(f"{text!r} is no grid of weights; expected START:STOP:STEP from 0 up, such as 0:0.5:0.02")
    return [round(start + step * number, 10) for number in range(count)]
