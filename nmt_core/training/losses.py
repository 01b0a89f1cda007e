"""Negative log-likelihood, computed so that logits never fill the memory.

The readouts of all positions are one matrix; logits, loss and their gradient are made for a slice of
its rows at a time. Padding is left out before the generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt_core.data.batching import Batch
from nmt_core.models.interface import TranslationModel

LOGITS_AT_A_TIME = 1 << 23  # with fewer the gradient of the output matrix is many products with few rows each
_ON_GPU = 8  # times as many on a GPU: 256 MiB in float32


@dataclass(frozen=True)
class Loss:
    """A summed loss in nats, with the words and sentences it was summed over."""

    total: float
    words: int
    sentences: int

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.total + other.total, self.words + other.words, self.sentences + other.sentences)

    @property
    def per_word(self) -> float:
        """Nats per target word, ``</s>`` counted."""
        return self.total / max(self.words, 1)

    @property
    def per_sentence(self) -> float:
        """Nats per sentence."""
        return self.total / max(self.sentences, 1)


NOTHING = Loss(0.0, 0, 0)


def backpropagate(
    model: TranslationModel,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    self_normalization: float = 0.0,
    per_word: bool = False,
    scale: float = 1.0,
    autocast: bool = False,
) -> Tensor:
    """Add the gradient of the batch's loss to the parameters; the summed loss as a scalar tensor.

    The gradient is that of the *sum* over words (Bahdanau et al. 2015 with their code), or of the mean
    if ``per_word``, times ``scale``. ``self_normalization`` is the weight of the squared log-normaliser of every word
    (Devlin et al. 2014, section 2.2): a model trained with it can be scored without the normaliser.
    """
    with torch.autocast(batch.source.words_BL.device.type, dtype=torch.bfloat16, enabled=autocast):
        readouts_NL = model.readouts(batch)[batch.target.mask_BL]
        words_N = batch.target.words_BL[batch.target.mask_BL]
        cut_NL = readouts_NL.detach().requires_grad_()
        scale = scale / words_N.shape[0] if per_word else scale
        total = torch.zeros((), device=cut_NL.device)
        rows = max(1, LOGITS_AT_A_TIME * (_ON_GPU if cut_NL.is_cuda else 1) // model.generator.words)
        for part_NL, goal_N in zip(cut_NL.split(rows), words_N.split(rows), strict=True):
            logits_NV = model.generator.logits(part_NL)
            loss, gradient_NV = _cross_entropy(logits_NV.detach(), goal_N, label_smoothing, self_normalization)
            logits_NV.backward(gradient_NV.mul_(scale).to(logits_NV.dtype))
            total += loss
    readouts_NL.backward(cut_NL.grad)
    return total


@torch.no_grad()
def negative_log_likelihood(model: TranslationModel, batch: Batch, *, autocast: bool = False) -> Loss:
    """The batch's loss without smoothing."""
    with torch.autocast(batch.source.words_BL.device.type, dtype=torch.bfloat16, enabled=autocast):
        total = -model(batch).double().sum().item()
    return Loss(total, int(batch.target.mask_BL.sum()), batch.target.rows)


def _cross_entropy(
    logits_NV: Tensor, goal_N: Tensor, smoothing: float, self_normalization: float
) -> tuple[Tensor, Tensor]:
    """The summed loss and its gradient by the logits, softmax minus goal, from one normaliser.

    With smoothing e the goal is 1 - e on the word and e / V on every word (Szegedy et al. 2016, section 7).
    With self-normalisation a, a (log Z)^2 is added, whose gradient is 2 a log Z times the softmax.
    """
    words = logits_NV.shape[1]
    log_probs_NV = torch.log_softmax(logits_NV, dim=1, dtype=torch.float32)
    picked_N1 = goal_N.unsqueeze(1)
    picked_log_probs_N1 = log_probs_NV.gather(1, picked_N1)
    loss = -(1.0 - smoothing) * picked_log_probs_N1.sum()
    if smoothing:
        loss = loss - smoothing / words * log_probs_NV.sum()
    gradient_NV = log_probs_NV.exp_()
    if self_normalization:
        log_normalizers_N1 = logits_NV.gather(1, picked_N1).float() - picked_log_probs_N1
        loss = loss + self_normalization * log_normalizers_N1.square().sum()
        gradient_NV *= 1.0 + 2.0 * self_normalization * log_normalizers_N1
    if smoothing:
        gradient_NV -= smoothing / words
    gradient_NV.scatter_add_(1, picked_N1, torch.full_like(picked_N1, smoothing - 1.0, dtype=torch.float32))
    return loss, gradient_NV
