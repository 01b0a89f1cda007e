"""Ties: rounding decides which of two nearly equal hypotheses a search keeps.

A search whose scores are changed at random, by less than the models' bound, keeps now the one and now the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from nmt_core.inference.output.spelling import CharacterPredictor
from nmt_core.inference.search.predictor import ModelPredictor, Prediction, block_maxima, log_normalizer

DRAWS = 30  # searches with other changes
_PARTS = (1 / 2, 1 / 8, 1 / 32)  # of the bound of a word


@contextlib.contextmanager
def changed_scores(draw: int, bound: float) -> Iterator[None]:
    """Within it every model adds random numbers to its scores; ``bound`` limits the change of a log-probability."""
    generator = torch.Generator().manual_seed(draw)
    size = bound * _PARTS[draw % len(_PARTS)]
    with pytest.MonkeyPatch.context() as patch:
        for kind in (ModelPredictor, CharacterPredictor):
            advance = kind.advance

            def changed(predictor: Any, *step: Any, advance: Any = advance) -> Prediction:
                found = advance(predictor, *step)
                noise_NV = torch.rand(found.scores_NV.shape, generator=generator, dtype=torch.float64)
                scores_NV = (found.scores_NV + size * (2 * noise_NV - 1)).to(found.scores_NV.dtype)
                tops_NG = block_maxima(scores_NV)
                normalizer_N = log_normalizer(scores_NV, tops_NG)
                return found._replace(scores_NV=scores_NV, tops_NG=tops_NG, normalizer_N=normalizer_N)

            patch.setattr(kind, "advance", changed)
        yield
