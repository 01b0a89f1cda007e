"""The log of the sum over all words of exp(logit), without ever holding the logits of all words.

Shapes (see ``nmt_core.layers``): N rows, L units of the readout, D columns of the output matrix, J = D + 3 those with
bias and shift, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.data.sizes import filled
from nmt_core.native import kernels
from nmt_core.native.tiles import TiledWords
from nmt_core.pauses import may_pause

Normalizer = Callable[[Tensor], Tensor]
"""Readouts (N, L) -> (N,) in float32 or better: what logits have to be lessened by to be log-probabilities."""

ROWS = 2048  # rows of a block of logits, and
_BLOCK = 8 << 20  # its bytes, between the sizes of caches
_FOR_SHIFT = 1024  # words whose largest logit keeps exp in range, and likely words near 0, where bfloat16 is finest
_AT_ONCE = 1 << 18  # logits exponentiated and summed together: 1 MiB in float32, within the second-level cache


class BlockNormalizer:
    """The normaliser of logits W x + b, for inference; ``inputs`` makes x (N, K) of a readout (N, L).

    On a CPU the words are taken in blocks whose logits stay in the cache. The bias and the shift that
    keeps exp in range are columns of the product, so that a block is multiplied, exponentiated and
    summed in one pass each; in bfloat16 a processor with AMX does all in one (``native/tiles.py``). The shift is the
    largest logit of the first, most frequent words, so that no sum can vanish; where one overflows, the row is done
    again with the largest logit of all.
    """

    def __init__(self, inputs: Callable[[Tensor], Tensor], weight_VD: Tensor, bias_V: Tensor) -> None:
        self._inputs = inputs
        self._weight_VD, self._bias_V = weight_VD, bias_V
        self._dtype = torch.promote_types(weight_VD.dtype, torch.float32)

    def __call__(self, readout_NL: Tensor) -> Tensor:
        """(N, L) -> (N,) in float32 or better."""
        inputs_ND = self._inputs(readout_NL)
        work = self._simply if inputs_ND.is_cuda else self._on_cpu
        return torch.cat([work(rows_ND) for rows_ND in inputs_ND.split(ROWS)])

    def scores_into(self, out_NV: Tensor, readout_NL: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Write the logits; the largest of every ``block`` words, and the normaliser of what was written.

        One loop, in bfloat16 where ``kernels.tiles_apply_to`` the weights.
        """
        tops_NG, normalizer_N = self._tiled.scores_into(out_NV, self._inputs(readout_NL), block)
        unsafe_N = ~torch.isfinite(normalizer_N)
        if bool(unsafe_N.any()):
            tops_NG[unsafe_N], normalizer_N[unsafe_N] = kernels.normalize(out_NV[unsafe_N], block)
        return tops_NG, normalizer_N

    def _simply(self, inputs_ND: Tensor) -> Tensor:
        logits_NV = F.linear(inputs_ND, self._weight_VD, self._bias_V)
        return torch.logsumexp(logits_NV.to(self._dtype), dim=1)

    def _on_cpu(self, inputs_ND: Tensor) -> Tensor:
        if kernels.tiles_apply_to(inputs_ND, self._weight_VD):
            normalizer_N = self._tiled.log_sum_exp(inputs_ND)
        else:
            normalizer_N = self._by_blocks(inputs_ND)
        unsafe_N = ~torch.isfinite(normalizer_N)
        if bool(unsafe_N.any()):
            normalizer_N[unsafe_N] = self._simply(inputs_ND[unsafe_N])
        return normalizer_N

    @cached_property
    def _tiled(self) -> TiledWords:
        return TiledWords(self._weight_VD, self._bias_V)

    @cached_property
    def _wide_VJ(self) -> Tensor:
        """The matrix with two columns for the bias, as two numbers of its type, and one for the shift."""
        high_V = self._bias_V.to(self._weight_VD.dtype)
        low_V = (self._bias_V.to(self._dtype) - high_V.to(self._dtype)).to(self._weight_VD.dtype)
        columns_V3 = torch.stack([high_V, low_V, torch.ones_like(high_V)], dim=1)
        return torch.cat([self._weight_VD, columns_V3], dim=1)

    def _by_blocks(self, inputs_ND: Tensor) -> Tensor:
        rows = inputs_ND.shape[0]
        inputs_NJ = F.pad(inputs_ND, (0, 3, 0, filled(rows, inputs_ND) - rows), value=1.0)  # for bias and shift
        inputs_NJ[:, -1] = 0.0
        blocks = self._wide_VJ.split(_BLOCK // (ROWS * inputs_NJ.itemsize))
        logits_NV = inputs_NJ.new_empty(inputs_NJ.shape[0], len(blocks[0]))
        shift_N = (inputs_NJ @ self._wide_VJ[:_FOR_SHIFT].t()).amax(dim=1)
        inputs_NJ[:, -1] = -shift_N
        total_N = torch.zeros(len(inputs_NJ), dtype=self._dtype)
        for block_VJ in blocks:
            may_pause()
            _add_exponentials(torch.mm(inputs_NJ, block_VJ.t(), out=logits_NV[:, : len(block_VJ)]), total_N)
        return total_N.log_().add_(shift_N)[:rows]


def _add_exponentials(logits_NV: Tensor, total_N: Tensor) -> None:
    """Add the sums over V of exp(logit), which stays in the cache."""
    if kernels.apply_to(logits_NV):
        kernels.add_exponentials(logits_NV, total_N)
        return
    at_once = max(1, _AT_ONCE // logits_NV.shape[1])
    for sum_N, some_NV in zip(total_N.split(at_once), logits_NV.split(at_once), strict=True):
        sum_N += some_NV.to(total_N.dtype).exp_().sum(dim=1)
