"""The pair scorer of the server, which keeps attention in arrays: as Python numbers it has eight times the size."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmt_core.inference.pair_scorer import ModelPairScorer
from nmt_core.inference.tree_walk import Weights
from nmt_core.interfaces import Aligns


class ArrayPairScorer(ModelPairScorer):
    """The same numbers; ``attention`` of a score is an array, used as rows of numbers."""

    def attention_of(self, weights_LS: Weights, aligns: Aligns) -> Any:
        """In the order of the text, apart from what the others of the batch have."""
        rows: Any = weights_LS  # an array is a sequence of them
        return np.array(self.order.attention(rows, aligns), dtype=np.float32)
