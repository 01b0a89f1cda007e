"""Log-probabilities of words, and the log of the sum over all words of exp(logit): on a CPU by blocks of words.

Numerator and normaliser of a probability are of the same logits, rounded or not: so it is at most 1, and those of all
words sum to 1.

Shapes (see ``nmt_core.layers``): N rows, L units of the readout, D columns of the output matrix, J = D + 3 those with
bias and shift, V words, M pairs of a row and a word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import bucket_rows
from nmt_core.device import on_device
from nmt_core.native import kernels
from nmt_core.native.tiles import TiledWords

ROWS = 2048  # rows of a block of logits at most, and
_BLOCK = 8 << 20  # its bytes, between the sizes of caches: of few rows it has more words
_FOR_SHIFT = 1024  # words whose largest logit keeps exp in range, and likely words near 0, where bfloat16 is finest
_FAR = 40.0  # above the shift exponentials, and logits in bfloat16, are less exact, and from 88 on infinite
_AT_ONCE = 1 << 18  # logits exponentiated and summed together: 1 MiB in float32, within the second-level cache


class _Sums(NamedTuple):
    """Of rows the log of the sum of exp(logit - shift), of pairs logit - shift; each row has a shift of its own."""

    log_total_N: Tensor
    logits_M: Tensor


class BlockNormalizer:
    """The normaliser of logits W x + b, for inference; ``inputs`` makes x (N, K) of a readout (N, L).

    On a CPU the words are taken in blocks whose logits stay in the cache. The bias and the shift that
    keeps exp in range are columns of the product, so that a block is multiplied, exponentiated and
    summed in one pass each; in bfloat16 a processor with AMX does all in one (``native/tiles.py``). The shift is the
    largest logit of the first, most frequent words, so that no sum can vanish; where another is far above it, the row
    is done again with the largest logit of all. A GPU makes all logits of some rows, in float32 also of bfloat16.
    """

    def __init__(self, inputs: Callable[[Tensor], Tensor], weight_VD: Tensor, bias_V: Tensor) -> None:
        self._inputs = inputs
        self._weight_VD, self._bias_V = weight_VD, bias_V
        self._dtype = torch.promote_types(weight_VD.dtype, torch.float32)

    def log_probs(self, readout_NL: Tensor, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """The log-probability of word ``words_M`` at row ``rows_M``, (M,) in float32 or better, at most 0 but for 1e-6.

        Rows ascend and are on the CPU, whatever the device: a GPU is not waited for. Raises ValueError where they fall.
        """
        if bool((rows_M.diff() < 0).any()):
            raise ValueError("expected rows in ascending order")
        inputs = self._inputs(readout_NL).split(ROWS)
        ends = torch.searchsorted(rows_M, ROWS * torch.arange(1, len(inputs) + 1))
        counts = ends.diff(prepend=ends.new_zeros(1)).tolist()
        rows = on_device(readout_NL.device, rows_M % ROWS)[0].split(counts)
        tiled = kernels.apply_to(inputs[0], self._weight_VD, tiles=True)
        sums_of = self._at_once if readout_NL.is_cuda else self._by_tiles if tiled else self._by_blocks
        found = []
        for inputs_ND, part_M, words_of_part_M in zip(inputs, rows, words_M.split(counts), strict=True):
            sums = sums_of(inputs_ND, part_M, words_of_part_M)
            unsafe_N = ~(sums.log_total_N.abs() < _FAR)  # or no number
            if not readout_NL.is_cuda and bool(unsafe_N.any()):
                self._correct(sums, unsafe_N, inputs_ND, part_M, words_of_part_M)
            found.append(sums.logits_M - sums.log_total_N[part_M])
        return torch.cat(found).to(self._dtype)

    def scores_into(self, out_NV: Tensor, readout_NL: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Write the logits; the largest of every ``block`` words, and the normaliser of what was written.

        One loop, in bfloat16 where kernels with tiles apply to the weights.
        """
        tops_NG, normalizer_N = self._tiled.scores_into(out_NV, self._inputs(readout_NL), block)
        unsafe_N = ~torch.isfinite(normalizer_N)
        if bool(unsafe_N.any()):
            tops_NG[unsafe_N], normalizer_N[unsafe_N] = kernels.normalize(out_NV[unsafe_N], block)
        return tops_NG, normalizer_N.clamp_(min=tops_NG.amax(dim=1).float())  # rounding had put it below

    def _at_once(self, inputs_ND: Tensor, rows_M: Tensor, words_M: Tensor) -> _Sums:
        """With the logits of all words."""
        logits_NV = exact_product(inputs_ND, self._weight_VD).add_(self._bias_V)
        logits_M = logits_NV.sub_(logits_NV.amax(dim=1, keepdim=True))[rows_M, words_M]
        return _Sums(logits_NV.exp_().sum(dim=1).log_(), logits_M)

    def _correct(self, sums: _Sums, unsafe_N: Tensor, inputs_ND: Tensor, rows_M: Tensor, words_M: Tensor) -> None:
        """Replace what a poor shift has made inexact."""
        of_unsafe_M = unsafe_N[rows_M]
        rows_of_unsafe_M = (unsafe_N.cumsum(0) - 1)[rows_M[of_unsafe_M]]
        again = self._at_once(inputs_ND[unsafe_N], rows_of_unsafe_M, words_M[of_unsafe_M])
        sums.log_total_N[unsafe_N] = again.log_total_N.double()
        sums.logits_M[of_unsafe_M] = again.logits_M

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

    def _by_tiles(self, inputs_ND: Tensor, rows_M: Tensor, words_M: Tensor) -> _Sums:
        _, total_N, logits_M = self._tiled.sums(inputs_ND, rows_M, words_M)
        return _Sums(total_N.double().log_(), logits_M)

    def _by_blocks(self, inputs_ND: Tensor, rows_M: Tensor, words_M: Tensor) -> _Sums:
        rows = inputs_ND.shape[0]
        inputs_NJ = F.pad(inputs_ND, (0, 3, 0, bucket_rows(rows, inputs_ND) - rows), value=1.0)  # for bias and shift
        inputs_NJ[:, -1] = 0.0
        size = _BLOCK // max(1, len(inputs_NJ) * inputs_NJ.itemsize)  # there may be no rows
        blocks = self._wide_VJ.split(size)
        logits_NV = inputs_NJ.new_empty(inputs_NJ.shape[0], len(blocks[0]))
        shift_N = (inputs_NJ @ self._wide_VJ[:_FOR_SHIFT].t()).amax(dim=1)
        inputs_NJ[:, -1] = -shift_N
        total_N = torch.zeros(len(inputs_NJ), dtype=self._dtype)
        order_M = words_M.argsort()
        picks = order_M.split((words_M // size).bincount(minlength=len(blocks)).tolist())
        logits_M = total_N.new_empty(len(words_M))
        for number, (block_VJ, pick_M) in enumerate(zip(blocks, picks, strict=True)):
            yield_point()
            torch.mm(inputs_NJ, block_VJ.t(), out=logits_NV[:, : len(block_VJ)])
            logits_M[pick_M] = logits_NV[rows_M[pick_M], words_M[pick_M] - number * size].to(self._dtype)
            _add_exponentials(logits_NV[:, : len(block_VJ)], total_N)
        return _Sums(total_N[:rows].double().log_(), logits_M)


def exact_product(inputs_ND: Tensor, weight_VD: Tensor) -> Tensor:
    """All logits without their bias, (N, V) in float32 or better: none is rounded to bfloat16."""
    if inputs_ND.is_cuda and weight_VD.dtype is torch.bfloat16:
        return torch.mm(inputs_ND, weight_VD.t(), out_dtype=torch.float32)
    dtype = torch.promote_types(weight_VD.dtype, torch.float32)
    return inputs_ND.to(dtype) @ weight_VD.t().to(dtype)


def _add_exponentials(logits_NV: Tensor, total_N: Tensor) -> None:
    """Add the sums over V of exp(logit), which stays in the cache."""
    if kernels.apply_to(logits_NV):
        kernels.add_exponentials(logits_NV, total_N)
        return
    at_once = max(1, _AT_ONCE // logits_NV.shape[1])
    for sum_N, some_NV in zip(total_N.split(at_once), logits_NV.split(at_once), strict=True):
        sum_N += some_NV.to(total_N.dtype).exp_().sum(dim=1)
