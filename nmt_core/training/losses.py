"""Gradients of minibatches, and how likely a model finds text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt_core.batches.padding import Batch
from nmt_core.layers.losses import Losses, LossOptions
from nmt_core.models.interface import TranslationModel


@dataclass(frozen=True)
class Loss:
    """A summed loss in nats, and the number of words it was summed over."""

    total: float
    words: int

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.total + other.total, self.words + other.words)

    @property
    def per_word(self) -> float:
        """Nats per target word, ``</s>`` counted."""
        return self.total / max(self.words, 1)


NOTHING = Loss(0.0, 0)


def backpropagate(
    model: TranslationModel,
    batch: Batch,
    options: LossOptions | None = None,
    *,
    scale: float = 1.0,
    autocast: bool = False,
    weights_B: Tensor | None = None,
) -> Losses:
    """Add the gradient of the batch's loss, times ``scale``, to the parameters; the loss.

    The loss is the *sum* over words (Bahdanau et al. 2015 with their code), of sentences with ``weights_B``.
    """
    with torch.autocast(batch.source.words_BL.device.type, dtype=torch.bfloat16, enabled=autocast):
        losses = model.loss(batch, options or LossOptions(), weights_B=weights_B)
    losses.objective.backward(torch.full_like(losses.objective, scale))
    return losses


@torch.no_grad()
def negative_log_likelihood(model: TranslationModel, batch: Batch) -> Loss:
    """The batch's loss without smoothing."""
    total = -model(batch).double().sum().item()
    return Loss(total, batch.target.places_2N.shape[1])
