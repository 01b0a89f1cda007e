"""From decoder state to word: the maxout readout and the output matrix.

Shapes: N rows, H hidden units, E embedding, C context, L maxout units, V words.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.sizes import filled

_WORTH_SORTING = 16  # words
_ROWS = 2048  # rows of a block of logits, and
_BLOCK = 8 << 20  # its bytes, between the sizes of caches
_FOR_SHIFT = 1024  # words whose largest logit keeps exp in range, and likely words near 0, where bfloat16 is finest
_AT_ONCE = 1 << 18  # logits exponentiated and summed together: 1 MiB in float32, within the second-level cache


class MaxoutReadout(nn.Module):
    """t = max over pairs of (U_o s + V_o E y + C_o c + b_o), Bahdanau et al. 2015, appendix A.2.2."""

    def __init__(self, hidden: int, embedding: int, context: int, units: int) -> None:
        super().__init__()
        self.state = nn.Linear(hidden, 2 * units)
        self.word = nn.Linear(embedding, 2 * units, bias=False)
        self.context = nn.Linear(context, 2 * units, bias=False)

    def forward(self, state: Tensor, embedded: Tensor, context_part: Tensor) -> Tensor:
        """(..., H), (..., E) and C_o c (..., 2L) -> (..., L); unit k is the larger of entries 2k and 2k + 1."""
        return self.join(state, self.word(embedded), context_part)

    def join(self, state: Tensor, word_part: Tensor, context_part: Tensor) -> Tensor:
        """The same from V_o E y (..., 2L)."""
        pairs = self.state(state) + word_part + context_part
        return torch.maximum(pairs[..., 0::2], pairs[..., 1::2])


class OutputLayer(nn.Module):
    """Logits W_o t + b; with ``rank`` the matrix is a product of two (Cho et al. 2014, supplement: G = G_l G_r).

    ``tied`` takes the target word embeddings as the second matrix.
    """

    def __init__(self, units: int, words: int, *, rank: int | None = None, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.low_rank = nn.Linear(units, rank, bias=False) if rank else None
        self.weight = tied.weight if tied is not None else nn.Parameter(torch.empty(words, rank or units))
        self.bias = nn.Parameter(torch.empty(words))

    def forward(self, readout_NL: Tensor, candidates_C: Tensor | None = None) -> Tensor:
        """(..., L) -> (..., V), or (..., C) for the candidate words alone."""
        inputs = readout_NL if self.low_rank is None else self.low_rank(readout_NL)
        if candidates_C is None:
            return F.linear(inputs, self.weight, self.bias)
        return F.linear(inputs, self.weight[candidates_C], self.bias[candidates_C])

    def normalizer(self, candidates_C: Tensor | None = None) -> Normalizer:
        """What is needed to normalise many rows over all words, or over the candidates alone."""
        weight_VK, bias_V = self.weight.detach(), self.bias.detach()
        if candidates_C is not None:
            weight_VK, bias_V = weight_VK[candidates_C], bias_V[candidates_C]
        fold = self.low_rank is not None and self.low_rank.weight.shape[0] >= self.low_rank.weight.shape[1]
        if self.low_rank is not None and fold:
            weight_VK = weight_VK @ self.low_rank.weight.detach()
        return Normalizer(self, weight_VK, bias_V, folded=fold)

    def at(self, readout_NL: Tensor, rows_E: Tensor, words_E: Tensor) -> Tensor:
        """The logit of word ``words_E`` at row ``rows_E``, (E,) in float32 or better: what ``forward`` has there."""
        inputs_NK = readout_NL if self.low_rank is None else self.low_rank(readout_NL)
        dtype = torch.promote_types(self.weight.dtype, torch.float32)
        parts = [
            torch.linalg.vecdot(inputs_NK.index_select(0, rows).to(dtype), self.weight.index_select(0, words).to(dtype))
            for rows, words in zip(rows_E.split(_ROWS), words_E.split(_ROWS), strict=True)
        ]
        return torch.cat(parts) + self.bias[words_E].to(dtype)


class Normalizer:
    """log sum over V of exp(logit), for inference, without ever holding the logits of all words.

    On a CPU the words are taken in blocks whose logits stay in the cache. The bias and the shift that
    keeps exp in range are columns of the product, so that a block is multiplied, exponentiated and
    summed in one pass each. The shift is the largest logit of the first, most frequent words, so that no
    sum can vanish; where one overflows, the row is done again with the largest logit of all.
    """

    def __init__(self, output: OutputLayer, weight_VK: Tensor, bias_V: Tensor, *, folded: bool) -> None:
        self._low_rank = None if folded else output.low_rank
        self._weight_VK, self._bias_V = weight_VK, bias_V
        self._dtype = torch.promote_types(weight_VK.dtype, torch.float32)
        high_V = bias_V.to(weight_VK.dtype)
        low_V = (bias_V.to(self._dtype) - high_V.to(self._dtype)).to(weight_VK.dtype)
        columns = [high_V, low_V, torch.ones_like(high_V)]
        self._wide_VJ = weight_VK if weight_VK.is_cuda else torch.cat([weight_VK, torch.stack(columns, dim=1)], dim=1)

    def __call__(self, readout_NL: Tensor) -> Tensor:
        """(N, L) -> (N,) in float32 or better."""
        inputs_NK = readout_NL if self._low_rank is None else self._low_rank(readout_NL)
        work = self._simply if inputs_NK.is_cuda else self._by_blocks
        return torch.cat([work(rows_NK) for rows_NK in inputs_NK.split(_ROWS)])

    def _simply(self, inputs_NK: Tensor) -> Tensor:
        logits_NV = F.linear(inputs_NK, self._weight_VK, self._bias_V)
        return torch.logsumexp(logits_NV.to(self._dtype), dim=1)

    def _by_blocks(self, inputs_NK: Tensor) -> Tensor:
        rows = inputs_NK.shape[0]
        inputs_NK = F.pad(inputs_NK, (0, 3, 0, filled(rows, inputs_NK) - rows), value=1.0)  # for bias and shift
        inputs_NK[:, -1] = 0.0
        blocks = self._wide_VJ.split(_BLOCK // (_ROWS * inputs_NK.itemsize))
        logits_NV = inputs_NK.new_empty(inputs_NK.shape[0], len(blocks[0]))
        shift_N = (inputs_NK @ self._wide_VJ[:_FOR_SHIFT].t()).amax(dim=1)
        inputs_NK[:, -1] = -shift_N
        total_N = torch.zeros(len(inputs_NK), dtype=self._dtype)
        for block_VJ in blocks:
            part_NV = torch.mm(inputs_NK, block_VJ.t(), out=logits_NV[:, : len(block_VJ)])
            at_once = max(1, _AT_ONCE // len(block_VJ))
            for sum_N, some_NV in zip(total_N.split(at_once), part_NV.split(at_once), strict=True):
                sum_N += some_NV.to(self._dtype).exp_().sum(dim=1)
        normalizer_N = total_N.log_().add_(shift_N)[:rows]
        unsafe_N = ~torch.isfinite(normalizer_N)
        if bool(unsafe_N.any()):
            normalizer_N[unsafe_N] = self._simply(inputs_NK[:rows][unsafe_N, :-3])
        return normalizer_N


class WordEmbedding(nn.Embedding):
    """Word vectors; ``NO_WORD`` (any negative id) is the zero vector."""

    def forward(self, words: Tensor) -> Tensor:
        """(...) -> (..., E)."""
        embedded = super().forward(words.clamp(min=0))
        return embedded * (words >= 0).unsqueeze(-1)

    def known(self, words: Tensor) -> Tensor:
        """The same for ids that are all words."""
        return super().forward(words)

    def shifted(self, words_BT: Tensor) -> Tensor:
        """The embedding of the word *before* each position, zero before the first: (B, T) -> (B, T, E)."""
        return F.pad(self.known(words_BT[:, :-1]), (0, 0, 1, 0))

    def apply_once(self, words_N: Tensor, work: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """``work`` done on the embeddings (N, E) of ``words_N``; for inference on a CPU, once for equal words."""
        if torch.is_grad_enabled() or words_N.is_cuda or words_N.shape[0] < _WORTH_SORTING:
            return work(self(words_N))
        distinct_U, places_N = words_N.unique(return_inverse=True)
        filling = filled(len(distinct_U), self.weight) - len(distinct_U)
        first_UX, second_UY = work(self(F.pad(distinct_U, (0, filling))))
        return first_UX.index_select(0, places_N), second_UY.index_select(0, places_N)
