"""Batched beam search (Bahdanau et al. 2015; Montréal's WMT'15 system): one loop of small named steps.

    advance    one predictor step for all live hypotheses of all sentences
    expand     their totals for every next word, rules of length and unknown words applied
    prune      the best of them for each sentence, as many as its beam still has places
    finish     those that end in </s> leave the beam, which shrinks by them
    reorder    states follow the survivors; sentences without survivors leave the batch

A sentence is done when ``beam`` hypotheses have finished. At the maximum length what is left is
closed with ``</s>``, at the probability the model gives to it, so that every log-probability
reported is the model's log p(y | x). Nothing in the loop is done word by word or hypothesis by
hypothesis in Python; words are collected at the end, by ``backtrace``.

Shapes: B sentences of the call, A of them still searched, K places of the widest live beam,
C candidates kept for each sentence, M = K * V continuations, V words, S source positions.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from nmt_core.config import Config
from nmt_core.data.batching import Padded
from nmt_core.errors import ModelError
from nmt_core.inference.backtrace import Moment, trace
from nmt_core.inference.hypothesis import Hypothesis
from nmt_core.inference.predictor import Predictor
from nmt_core.inference.selection import top_scores
from nmt_core.models.interface import NO_WORD, Rows
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

_BARELY = -1e30  # instead of -inf for an </s> that has to be taken whatever its probability


class DecodingConfig(Config):
    """How to search.

    ``beam`` hypotheses are followed and the ``nbest`` best returned, ranked by
    log p / length ** ``length_normalization`` (``</s>`` counts; 0 ranks by log p). A translation
    has between ``min_length`` and ``max_length_ratio`` * source words + ``max_length_extra`` words.
    """

    beam: int = Field(default=12, ge=1)
    nbest: int = Field(default=1, ge=1)
    length_normalization: float = Field(default=1.0, ge=0.0)
    max_length_ratio: float = Field(default=2.0, ge=0.0)
    max_length_extra: int = Field(default=10, ge=0)
    min_length: int = Field(default=0, ge=0)
    forbid_unknown: bool = False


def length_limits(source: Padded, *, ratio: float, extra: int, least: int = 0) -> list[int]:
    """The most words each translation may have, from the number of its source words."""
    words = (source.mask_BL.sum(dim=1) - 1).tolist()
    return [max(int(ratio * count) + extra, least) for count in words]


@torch.inference_mode()
def beam_search(
    predictor: Predictor, source: Padded, *, config: DecodingConfig, attention: bool = False
) -> list[list[Hypothesis]]:
    """The best hypotheses of every source, best first: at most ``config.nbest``, at least one.

    Raises ModelError when the predictor's numbers are not probabilities.
    """
    search = _Search(predictor, source.to(predictor.device), config, attention=attention)
    while search.sentences:
        search.step()
    widths = source.mask_BL.sum(dim=1).tolist()
    found = trace(search.history, widths=widths, length_normalization=config.length_normalization)
    for hypotheses in found:
        if not hypotheses:
            problem = "the model's probabilities are not numbers: its training diverged or its files are damaged"
            raise ModelError(problem)
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier finished comes first
    return [hypotheses[: config.nbest] for hypotheses in found]


class _Search:
    """The live beams of a batch of sentences."""

    def __init__(self, predictor: Predictor, source: Padded, config: DecodingConfig, *, attention: bool) -> None:
        self.predictor, self.config, self.attention = predictor, config, attention
        self.sentences = list(range(source.rows))
        self.limits = length_limits(
            source, ratio=config.max_length_ratio, extra=config.max_length_extra, least=config.min_length
        )
        self.history: list[Moment] = []
        device = predictor.device
        self.memory: Rows
        self.state: Rows
        self.memory, self.state = predictor.begin(source)
        self.previous_AK = torch.full((source.rows, 1), NO_WORD, dtype=torch.int64, device=device)
        self.columns_AK = torch.zeros((source.rows, 1), dtype=torch.int64, device=device)
        self.totals_AK = torch.zeros((source.rows, 1), device=device)
        self.places_A1 = torch.full((source.rows, 1), config.beam, dtype=torch.int64, device=device)
        self.ranks_1C = torch.arange(config.beam, device=device).unsqueeze(0)

    def step(self) -> None:
        """Advance all live hypotheses by one word."""
        rows, beam = self.previous_AK.shape
        log_probs_NV, self.state, attention_NS = self.predictor.advance(
            self.previous_AK.flatten(), self.state, self.memory
        )
        log_probs_AM = log_probs_NV.reshape(rows, -1)
        words = log_probs_NV.shape[1]
        totals_AC, indices_AC = top_scores(self._expand(log_probs_AM.view(rows, beam, words)), self.config.beam)
        words_AC, parents_AC = indices_AC % words, indices_AC // words
        kept_AC = (self.ranks_1C[:, : words_AC.shape[1]] < self.places_A1) & (totals_AC > -torch.inf)
        finished_AC = kept_AC & (words_AC == END_ID)
        looked_AKS = attention_NS.view(rows, beam, -1) if self.attention and attention_NS is not None else None
        self.history.append(
            Moment(
                sentences=self.sentences,
                words_AC=words_AC,
                log_probs_AC=log_probs_AM.gather(1, indices_AC),
                parents_AC=parents_AC,
                finished_AC=finished_AC,
                columns_AK=self.columns_AK,
                attention_AKS=looked_AKS,
            )
        )
        self.places_A1 = self.places_A1 - finished_AC.sum(dim=1, keepdim=True)
        self._reorder(totals_AC, words_AC, parents_AC, kept_AC & ~finished_AC)

    def _expand(self, log_probs_AKV: Tensor) -> Tensor:
        """Totals of all continuations, (A, K * V), impossible where the rules forbid them."""
        totals_AKV = self.totals_AK.unsqueeze(2) + log_probs_AKV
        length = len(self.history)
        if self.config.forbid_unknown:
            totals_AKV[:, :, UNKNOWN_ID] = -torch.inf
        if length < self.config.min_length:
            totals_AKV[:, :, END_ID] = -torch.inf
        full = [row for row, sentence in enumerate(self.sentences) if length >= self.limits[sentence]]
        if full:
            closed_AK = self.totals_AK[full] + log_probs_AKV[full, :, END_ID].clamp(min=_BARELY)
            totals_AKV[full] = -torch.inf
            totals_AKV[full, :, END_ID] = closed_AK
        return totals_AKV.flatten(1)

    def _reorder(self, totals_AC: Tensor, words_AC: Tensor, parents_AC: Tensor, live_AC: Tensor) -> None:
        """Move the survivors to the left of their beams and drop sentences that have none."""
        counts: list[int] = live_AC.sum(dim=1).tolist()
        staying = [row for row, count in enumerate(counts) if count]
        if not staying:
            self.sentences = []
            return
        columns_AK = live_AC.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : max(counts)]
        rows_A1 = torch.arange(len(counts), device=live_AC.device).unsqueeze(1)
        if len(staying) < len(counts):
            rows = torch.tensor(staying, device=live_AC.device)
            columns_AK, rows_A1, self.places_A1 = columns_AK[rows], rows_A1[rows], self.places_A1[rows]
            self.memory = self.memory.select(rows)
            self.sentences = [self.sentences[row] for row in staying]
        # Places beyond a sentence's own survivors are filled with dead hypotheses, total -inf.
        self.totals_AK = totals_AC.masked_fill(~live_AC, -torch.inf)[rows_A1, columns_AK]
        parents_AK = parents_AC[rows_A1, columns_AK] + rows_A1 * self.previous_AK.shape[1]
        self.state = self.state.select(parents_AK.flatten())
        self.previous_AK = words_AC[rows_A1, columns_AK]
        self.columns_AK = columns_AK
