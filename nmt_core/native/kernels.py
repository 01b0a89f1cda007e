"""Inner loops of bfloat16 models on a CPU, compiled: here tensors are checked, and given as pointers.

``apply_to`` says whether they can be used; where they cannot, callers do the same with PyTorch. Numbers are computed in
float32 and rounded once; each row by itself, so that it is the same in every batch.

Shapes: N rows, V words, G blocks of them, H units of a state, L of a readout, B sentences, S positions, A units of a
key, X of a value.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nmt_core.native.library import AttentionArguments, CellArguments, GateArguments, MaxoutArguments, load

_TYPE = torch.bfloat16
_LANES = 16


def apply_to(*tensors: Tensor, tiles: bool = False) -> bool:
    """Whether there are kernels for such tensors: in bfloat16, on a CPU, where no gradients are taken.

    With ``tiles`` those that need AMX (``tiles.py``). Kernels have one thread: where PyTorch has more, it shares the
    same work among them.
    """
    if any(tensor.dtype is not _TYPE or tensor.device.type != "cpu" for tensor in tensors):
        return False
    library = None if torch.is_grad_enabled() or torch.get_num_threads() > 1 else load()
    return library is not None and (library.has_tiles or not tiles)


def name_kernels(parameter: Tensor) -> str:
    """What a signature says of them: which numbers they give a model of such parameters, or nothing."""
    with torch.no_grad():
        library = load() if apply_to(parameter) else None
    return "" if library is None else f"|kernels:{library.version}"


def add_exponentials(logits_NV: Tensor, total_N: Tensor) -> None:
    """Add to ``total_N`` (float32) the sum over V of exp(logit); infinite where one is above 88.7."""
    rows, words = logits_NV.shape
    _check(logits_NV, (rows, words))
    _check(total_N, (rows,), dtype=torch.float32, whole=True)
    call("add_exponentials", logits_NV.data_ptr(), rows, words, logits_NV.stride(0), total_N.data_ptr())


def normalize(scores_NV: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """The largest score of each ``block`` words, (N, G), and the log of the sum of exp(score), (N,) in float32."""
    rows, words = scores_NV.shape
    _check(scores_NV, (rows, words))
    tops_NG = scores_NV.new_empty(rows, -(-words // block))
    shift_N, total_N = (_floats(rows) for _ in range(2))
    outputs = [one.data_ptr() for one in (tops_NG, shift_N, total_N)]
    call("normalize", scores_NV.data_ptr(), rows, words, scores_NV.stride(0), block, *outputs)
    return tops_NG, total_N.log_().add_(shift_N)


def attend(
    query_NA: Tensor, keys_BSA: Tensor, values_BSX: Tensor, energy_A: Tensor, sentences_N: Tensor, words_B: Tensor
) -> tuple[Tensor, Tensor]:
    """Sums of values (N, X) and weights (N, S) in float32: softmax of energy . tanh(query + key) over S.

    Row n looks at the first ``words_B`` positions, at least one, of sentence ``sentences_N`` (both int64).
    """
    rows, (sentences, positions, units), size = len(query_NA), keys_BSA.shape, values_BSX.shape[2]
    query_NA, keys_BSA, values_BSX = (one.contiguous() for one in (query_NA, keys_BSA, values_BSX))
    energy_A, sentences_N, words_B = (one.contiguous() for one in (energy_A, sentences_N, words_B))
    _check(query_NA, (rows, units), whole=True)
    _check(keys_BSA, (sentences, positions, units), whole=True)
    _check(values_BSX, (sentences, positions, size), whole=True)
    _check(energy_A, (units,), whole=True)
    _check(sentences_N, (rows,), dtype=torch.int64, whole=True)
    _check(words_B, (sentences,), dtype=torch.int64, whole=True)
    context_NX, weights_NS = query_NA.new_empty(rows, size), _floats(rows, positions)
    scratch = _floats(2 * -(-units // _LANES) * _LANES)
    inputs = (query_NA, keys_BSA, values_BSX, energy_A, sentences_N, words_B)
    pointers = [one.data_ptr() for one in (*inputs, context_NX, weights_NS, scratch)]
    given = AttentionArguments(*pointers[:6], rows, positions, units, size, *pointers[6:])
    call("attend", ctypes.byref(given))
    return context_NX, weights_NS


def gated_step(
    word_N3H: Tensor,
    context_N3H: Tensor | None,
    state_NH: Tensor,
    gates: Callable[[Tensor], Tensor],
    candidate: Callable[[Tensor], Tensor],
) -> Tensor:
    """(1 - z) h + z tanh(x + c + U (r h)), (N, H), of candidate, update gate z and reset gate r side by side.

    ``gates`` and ``candidate`` are the products with states, (N, H) -> (N, 2H) and (N, H).
    """
    rows, units = state_NH.shape
    state_NH = state_NH.contiguous()
    inputs = _inputs(word_N3H, context_N3H, (rows, 3 * units))
    strides = [0 if one is None else one.stride(0) for one in inputs]
    given = GateArguments(*map(_address, (*inputs, state_NH)), rows, units, *strides)
    update_NH, kept_NH, next_NH = (torch.empty_like(state_NH) for _ in range(3))
    gates_N2H = gates(state_NH).contiguous()
    _check(gates_N2H, (rows, 2 * units), whole=True)
    call("gates", ctypes.byref(given), gates_N2H.data_ptr(), update_NH.data_ptr(), kept_NH.data_ptr())
    product_NH = candidate(kept_NH).contiguous()
    _check(product_NH, (rows, units), whole=True)
    call("candidate", ctypes.byref(given), product_NH.data_ptr(), update_NH.data_ptr(), next_NH.data_ptr())
    return next_NH


def memory_cell_step(
    word_N4H: Tensor, context_N4H: Tensor | None, state_N2H: Tensor, product_N4H: Tensor, *, remember: float
) -> Tensor:
    """The next h' = o tanh(c'), and behind it c' = f c + i g, (N, 2H), of i, f, o and g side by side.

    What they read is the sum of the inputs and of ``product_N4H``, that with h; ``remember`` is added for f.
    """
    rows, units = len(state_N2H), state_N2H.shape[1] // 2
    product_N4H, state = product_N4H.contiguous(), _in_rows(state_N2H)
    _check(product_N4H, (rows, 4 * units), whole=True)
    _check(state, (rows, 2 * units))
    read = (*_inputs(word_N4H, context_N4H, (rows, 4 * units)), state)
    strides = [0 if one is None else one.stride(0) for one in read]
    given = CellArguments(*map(_address, read), rows, units, *strides, remember)
    next_N2H = product_N4H.new_empty(rows, 2 * units)
    call("memory_cell", ctypes.byref(given), product_N4H.data_ptr(), next_N2H.data_ptr())
    return next_N2H


def maxout(pieces: Sequence[Tensor]) -> Tensor:
    """Of the sum of one to three (N, 2L) the larger of entries 2k and 2k + 1, (N, L)."""
    rows, pairs = pieces[0].shape
    pieces = [_in_rows(piece) for piece in pieces]
    for piece in pieces:
        _check(piece, (rows, pairs))
    read_NL = pieces[0].new_empty(rows, pairs // 2)
    pointers, strides = [piece.data_ptr() for piece in pieces], [piece.stride(0) for piece in pieces]
    given = MaxoutArguments((ctypes.c_void_p * 3)(*pointers), (ctypes.c_int64 * 3)(*strides), rows, pairs // 2)
    call("maxout", ctypes.byref(given), read_NL.data_ptr())
    return read_NL


def call(name: str, *arguments: Any) -> None:
    """Call one of the library's functions; Python's lock is free meanwhile."""
    library = load()
    assert library is not None, "apply_to says whether there are kernels"
    library.functions[name](*arguments)


def _inputs(word: Tensor, context: Tensor | None, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None]:
    """What the word and the context add to gates, in rows."""
    inputs = _in_rows(word), None if context is None else _in_rows(context)
    for one in inputs:
        if one is not None:
            _check(one, shape)
    return inputs


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _in_rows(tensor: Tensor) -> Tensor:
    """With the numbers of a row side by side."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _check(tensor: Tensor, shape: tuple[int, ...], *, dtype: torch.dtype = _TYPE, whole: bool = False) -> None:
    """Raise ValueError for a tensor that a kernel would read or write wrongly."""
    side_by_side = tensor.is_contiguous() if whole else tensor.stride(-1) == 1
    if tensor.shape != shape or tensor.dtype is not dtype or tensor.device.type != "cpu" or not side_by_side:
        kind = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}, strides {tensor.stride()}"
        raise ValueError(f"expected {shape} of {dtype} on a CPU, rows in one piece, not {kind}")


def _floats(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32)
