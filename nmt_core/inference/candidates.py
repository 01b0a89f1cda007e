"""One choice of a running search: which words continue which hypotheses.

Scores stay on the device of the model; the few candidates that are chosen of them come to the host,
all at once: on a GPU this is the only time in a step that it is waited for.

Shapes: N rows, A sentences, K rows of the sentence that has most, C candidates of each, V words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.inference.predictor import Advance
from nmt_core.inference.search_tables import Flags, Floats, Integers, RowTable, SentenceTable
from nmt_core.inference.selection import BLOCK, best_continuations, settle
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

_BARELY = -1e30  # instead of -inf for an </s> that has to be taken whatever its probability


class Chosen(NamedTuple):
    """The candidates of every sentence, best first: totals, log-probabilities of the words, rows and words."""

    totals_AC: Floats
    log_probs_AC: Floats
    rows_AC: Integers
    words_AC: Integers

    def kept(self, places_A: Integers) -> Flags:
        """Those that are possible and for which there is a place."""
        kept_AC: Flags = (np.arange(self.totals_AC.shape[1]) < places_A[:, None]) & (self.totals_AC > -np.inf)
        return kept_AC


def choose(advance: Advance, sentences: SentenceTable, rows: RowTable, *, time: int) -> Chosen:
    """The best continuations that the rules allow, as many for every sentence as the most places of any.

    ``rows`` are ordered as ``sentences`` are; the rows of ``advance`` beyond them are not looked at.
    """
    count = len(rows.slots_N)
    scores_NV, tops_NG, normalizer_N = (part[:count] for part in advance[:3])
    owners_N = np.searchsorted(sentences.slots_A, rows.slots_N)
    _restrict(scores_NV, tops_NG, normalizer_N, sentences, owners_N, time)
    counts_A = np.bincount(owners_N, minlength=len(sentences.slots_A))
    starts_A = np.cumsum(counts_A) - counts_A
    columns_K = np.arange(counts_A.max())
    missing_AK = columns_K >= counts_A[:, None]
    rows_AK = np.where(missing_AK, starts_A[:, None], starts_A[:, None] + columns_K)
    offsets_N = _like(normalizer_N, rows.totals_N).to(normalizer_N.dtype) - normalizer_N
    best = best_continuations(
        scores_NV,
        tops_NG,
        offsets_N,
        _like(scores_NV, rows_AK),
        _like(scores_NV, missing_AK),
        count=int(sentences.places_A.max()),
    )

    def fetch() -> Floats:
        log_probs_AC = scores_NV.flatten()[best.indices_AC].double()
        log_probs_AC -= normalizer_N[best.indices_AC // scores_NV.shape[1]]
        parts = (best.totals_AC, log_probs_AC, best.indices_AC, best.unsettled_A.unsqueeze(1))
        fetched: Floats = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
        return fetched

    fetched = fetch()
    unsettled = np.flatnonzero(fetched[:, -1]).tolist()
    for sentence in unsettled:
        start = int(starts_A[sentence])
        there = range(start, start + int(counts_A[sentence]))
        settle(scores_NV, offsets_N, best, sentence=sentence, rows=there)
    totals_AC, log_probs_AC, indices_AC = np.split((fetch() if unsettled else fetched)[:, :-1], 3, axis=1)
    rows_AC, words_AC = np.divmod(indices_AC.astype(np.int64), scores_NV.shape[1])
    return Chosen(totals_AC, np.where(log_probs_AC < 0.5 * _BARELY, -np.inf, log_probs_AC), rows_AC, words_AC)


def _restrict(
    scores_NV: Tensor, tops_NG: Tensor, normalizer_N: Tensor, sentences: SentenceTable, owners_N: Integers, time: int
) -> None:
    """Make impossible what the rules forbid; at its greatest length a sentence is closed, whatever that costs."""
    lengths_A = time - sentences.begun_A
    short_A, full_A = lengths_A < sentences.least_A, lengths_A >= sentences.limits_A
    for which_A, word in ((sentences.forbid_A, UNKNOWN_ID), (short_A, END_ID)):
        if which_A.any():
            scores_NV[_like(scores_NV, np.flatnonzero(which_A[owners_N])), word] = -torch.inf
    if sentences.forbid_A.any() or short_A.any():
        tops_NG[:, 0] = scores_NV[:, :BLOCK].amax(dim=1)  # special words come first
    if full_A.any():
        full = _like(scores_NV, np.flatnonzero(full_A[owners_N]))
        ends, normalizers = scores_NV[full, END_ID].to(normalizer_N.dtype), normalizer_N[full]
        ends = ((ends - normalizers).clamp(min=_BARELY) + normalizers).to(scores_NV.dtype)
        scores_NV[full], tops_NG[full] = -torch.inf, -torch.inf
        scores_NV[full, END_ID] = tops_NG[full, 0] = ends


def _like(tensor: Tensor, values: npt.NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(values).to(tensor.device, non_blocking=True)
