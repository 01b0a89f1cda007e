"""Products of bfloat16 models on a CPU with AMX, and their normaliser, with exponentials and sums in the same loop.

The normaliser alone never rounds logits to bfloat16 nor writes them to memory. Each row is computed by itself and in
one order, so that it is the same in every batch. ``kernels.apply_to`` says of which matrices and inputs.

Shapes: N rows, I inputs and O outputs of a matrix, D columns of the output matrix, V words; a row has K and the
vocabulary W numbers, filled up; G blocks of words.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.native import kernels
from nmt_core.native.library import NormalizerArguments, ProductArguments, ScoreArguments

_LANES = 16
_SIDE = 2 * _LANES
_SUMS = 32 * _SIDE * _SIDE  # as many blocks as products.cpp keeps at most


class TiledMatrix:
    """``x -> x W^T + b`` for a matrix W (O, I) as it is now, in the order in which tiles are loaded."""

    def __init__(self, weight_OI: Tensor) -> None:
        self.outputs, self.inputs = weight_OI.shape
        whole = F.pad(weight_OI, (0, -self.inputs % _SIDE, 0, -self.outputs % _SIDE))
        self.rows, self.size = whole.shape
        shape = (self.rows // _SIDE, 2, _LANES, self.size // _SIDE, _LANES, 2)
        self.tiles = whole.view(shape).permute(0, 3, 1, 4, 2, 5).contiguous()

    def check(self, inputs: Tensor) -> None:
        """Raise ValueError for what cannot be multiplied."""
        if inputs.shape[-1] != self.inputs or inputs.dtype is not torch.bfloat16 or inputs.device.type != "cpu":
            kind = f"{tuple(inputs.shape)} of {inputs.dtype} on {inputs.device}"
            raise ValueError(f"expected (rows, {self.inputs}) of torch.bfloat16 on a CPU, not {kind}")

    def __call__(self, inputs: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """(..., I) -> (..., O)."""
        self.check(inputs)
        if bias_O is not None and (bias_O.shape != (self.outputs,) or not bias_O.is_contiguous()):
            raise ValueError(f"expected a bias of {self.outputs} numbers, not {tuple(bias_O.shape)}")
        bias_O = None if bias_O is None else bias_O.to(inputs.dtype)
        inputs_NI = inputs.reshape(-1, self.inputs)
        if inputs_NI.stride(1) != 1:
            inputs_NI = inputs_NI.contiguous()
        product_NO = inputs.new_empty(len(inputs_NI), self.outputs)
        copies = inputs.new_empty(_SIDE * (self.size + _SIDE))
        sums = torch.empty(_SUMS, dtype=torch.float32)
        given = ProductArguments(
            inputs_NI.data_ptr(),
            self.tiles.data_ptr(),
            None if bias_O is None else bias_O.data_ptr(),
            len(inputs_NI),
            self.inputs,
            inputs_NI.stride(0),
            self.size,
            self.outputs,
            product_NO.data_ptr(),
            copies.data_ptr(),
            copies[_SIDE * self.size :].data_ptr(),
            sums.data_ptr(),
        )
        kernels.call("multiply", ctypes.byref(given))
        return product_NO.view(*inputs.shape[:-1], self.outputs)


class _Pairs(NamedTuple):
    """Rows and words in the order of ``normalizer.cpp``, and where their logits are written."""

    rows_M: Tensor
    words_M: Tensor
    logits_M: Tensor


class TiledWords:
    """The output matrix, and the bias in float32."""

    def __init__(self, weight_VD: Tensor, bias_V: Tensor) -> None:
        self.words, self._matrix = len(weight_VD), TiledMatrix(weight_VD)
        self._bias_W = F.pad(bias_V.float(), (0, self._matrix.rows - self.words), value=-torch.inf)

    def sums(self, inputs_ND: Tensor, rows_M: Tensor, words_M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of rows of W x + b a shift and the sum of exp(logit - shift), (N,); logit - shift of pairs (M,). In float32.

        A sum may be infinite or no number where logits differ by more than 88 from those of the first words.
        """
        order_M = (rows_M // _SIDE * self._matrix.rows + words_M).argsort()
        logits_M = torch.empty(len(order_M), dtype=torch.float32)
        pairs = _Pairs(rows_M[order_M], words_M[order_M], logits_M)
        shift_N, total_N = self._sum(inputs_ND, pairs, lambda given: kernels.call("log_sum_exp", ctypes.byref(given)))
        return shift_N, total_N, torch.empty_like(logits_M).index_copy_(0, order_M, logits_M)

    def scores_into(self, out_NV: Tensor, inputs_ND: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Write W x + b; the largest of every ``block`` words, (N, G), and the normaliser of what was written.

        A row's largest ones are right where its sum is finite; it is not where a score is no number.
        """
        rows = len(inputs_ND)
        if block < _SIDE or block & (block - 1):
            raise ValueError(f"expected blocks of a power of two of words, at least {_SIDE}, not {block}")
        if out_NV.shape != (rows, self.words) or out_NV.dtype is not inputs_ND.dtype or not out_NV.is_contiguous():
            raise ValueError(f"expected room for {(rows, self.words)}, not {tuple(out_NV.shape)} of {out_NV.dtype}")
        blocks = -(-self.words // block)
        tops_NG = out_NV.new_empty(rows, blocks)
        most = torch.empty(rows, _LANES, dtype=torch.float32)
        outputs = (out_NV.data_ptr(), tops_NG.data_ptr(), most.data_ptr())

        def work(given: NormalizerArguments) -> None:
            kernels.call("score", ctypes.byref(ScoreArguments(given, rows, self.words, block, blocks, *outputs)))

        none = torch.empty(0, dtype=torch.int64)
        shift_N, total_N = self._sum(inputs_ND, _Pairs(none, none, none.float()), work)
        return tops_NG, total_N.log_().add_(shift_N)

    def _sum(
        self, inputs_ND: Tensor, pairs: _Pairs, work: Callable[[NormalizerArguments], None]
    ) -> tuple[Tensor, Tensor]:
        """The shifts and the sums, (N,), that ``work`` makes."""
        self._matrix.check(inputs_ND)
        rows, columns = inputs_ND.shape
        inputs_NK = F.pad(inputs_ND, (0, self._matrix.size - columns, 0, -rows % _SIDE)).contiguous()
        shift_N, total_N = (torch.empty(len(inputs_NK), dtype=torch.float32) for _ in range(2))
        lanes = torch.empty(len(inputs_NK), _LANES, dtype=torch.float32)
        sizes = (len(inputs_NK), self._matrix.size, self._matrix.rows)
        inputs = (inputs_NK.data_ptr(), self._matrix.tiles.data_ptr(), self._bias_W.data_ptr())
        bounds = torch.searchsorted(pairs.rows_M // _SIDE, torch.arange(len(inputs_NK) // _SIDE + 1))
        next_pair, ends = bounds[:-1].clone(), bounds[1:].contiguous()
        numbers = (pairs.rows_M, pairs.words_M, ends, next_pair, pairs.logits_M, lanes, shift_N, total_N)
        given = NormalizerArguments(*inputs, *sizes, *(one.data_ptr() for one in numbers))
        work(given)
        return shift_N[:rows], total_N[:rows]
