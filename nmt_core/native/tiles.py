"""The normaliser of bfloat16 models on a CPU with AMX: logits, their exponentials and the sums in one compiled loop.

Logits are never rounded to bfloat16 here, nor written to memory. Each row is computed by itself and in one order, so
that it is the same in every batch.

Shapes: N rows, D columns of the output matrix, V words; a row has K and the vocabulary W numbers, filled up.
"""

from __future__ import annotations

import ctypes

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.native import kernels
from nmt_core.native.library import NormalizerArguments

_LANES = 16
_SIDE = 2 * _LANES


class TiledWords:
    """The output matrix in the order in which tiles are loaded, and the bias in float32.

    ``kernels.tiles_apply_to`` says of which matrices and inputs.
    """

    def __init__(self, weight_VD: Tensor, bias_V: Tensor) -> None:
        self.words, self._columns = weight_VD.shape
        more_words, more_columns = -self.words % _SIDE, -self._columns % _SIDE
        whole_WK = F.pad(weight_VD, (0, more_columns, 0, more_words))
        shape = (len(whole_WK) // _SIDE, 2, _LANES, whole_WK.shape[1] // _SIDE, _LANES, 2)
        self._tiles = whole_WK.view(shape).permute(0, 3, 1, 4, 2, 5).contiguous()
        self._bias_W = F.pad(bias_V.float(), (0, more_words), value=-torch.inf)
        self._size = whole_WK.shape[1]

    def log_sum_exp(self, inputs_ND: Tensor) -> Tensor:
        """The log of the sum of exp(W x + b) over the words, (N, D) -> (N,) in float32.

        It may be infinite or no number where logits differ by more than 88 from those of the first words.
        """
        rows, columns = inputs_ND.shape
        if columns != self._columns or inputs_ND.dtype is not torch.bfloat16 or inputs_ND.device.type != "cpu":
            kind = f"{tuple(inputs_ND.shape)} of {inputs_ND.dtype} on {inputs_ND.device}"
            raise ValueError(f"expected (rows, {self._columns}) of torch.bfloat16 on a CPU, not {kind}")
        inputs_NK = F.pad(inputs_ND, (0, self._size - columns, 0, -rows % _SIDE)).contiguous()
        shift_N, total_N = (torch.empty(len(inputs_NK), dtype=torch.float32) for _ in range(2))
        lanes = torch.empty(len(inputs_NK), _LANES, dtype=torch.float32)
        sizes = (len(inputs_NK), self._size, len(self._bias_W))
        inputs = (inputs_NK.data_ptr(), self._tiles.data_ptr(), self._bias_W.data_ptr())
        given = NormalizerArguments(*inputs, *sizes, lanes.data_ptr(), shift_N.data_ptr(), total_N.data_ptr())
        kernels.call("log_sum_exp", ctypes.byref(given))
        return total_N.log_().add_(shift_N)[:rows]
