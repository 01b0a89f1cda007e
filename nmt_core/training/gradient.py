"""The gradient of an update: of its minibatches one after the other, or of microbatches that processes share.

Without ``microbatches`` every minibatch adds to the gradient. With G of them each is computed for itself, with random
numbers that depend on seed, update and its own number alone. They are added in a fixed order (``processes.py``): one
process that computes all and G processes that compute one each end with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt_core.batches.padding import Batch
from nmt_core.layers.losses import Losses, LossOptions
from nmt_core.models.interface import TranslationModel
from nmt_core.training.config import TrainingConfig
from nmt_core.training.processes import OrderedSum, Ranks, SharedSum, can_share, flat
from nmt_core.training.tasks import Task, Work

_DRAWS = 2  # sets these random numbers apart from others of the same seed


class Gradients:
    """Computes gradients into the parameters of a task's model."""

    def __init__(self, config: TrainingConfig, ranks: Ranks) -> None:
        self._config, self._ranks = config, ranks
        self._microbatches = ranks.share(config.microbatches)
        self._shared = SharedSum(ranks) if can_share(ranks) else None

    @property
    def own(self) -> range:
        """The places of this process's minibatches among those of an update."""
        each = self._config.update_every
        return range(self._microbatches.start * each, self._microbatches.stop * each)

    def compute(self, task: Task, work: Work, *, update: int) -> tuple[Tensor, list[Losses]]:
        """The objective of the whole update, and the losses of this process's minibatches.

        Parameters are expected to have no gradient.
        """
        if self._config.microbatches == 1:
            losses = self._add(task, work, work.batches)
            return torch.stack([each.objective.detach() for each in losses]).sum(), losses
        parameters = [parameter for parameter in task.loaded.model.parameters() if parameter.requires_grad]
        each, losses = self._config.update_every, list[Losses]()
        added, buffer = OrderedSum(len(self._microbatches)), self._buffer(parameters)
        for place, number in enumerate(self._microbatches):
            self._seed(update, number)
            batches = work.batches[place * each : (place + 1) * each]
            found = self._add(task, work, batches)
            losses += found
            objective = sum((one.objective.detach() for one in found), parameters[0].new_zeros((), dtype=torch.float32))
            added.add(_taken_out(parameters, objective, None if place else buffer))
        self._seed(update, self._config.microbatches)  # what is saved does not depend on who computed what
        total = self._total(added.finish(), buffer)
        _put_back(parameters, total)
        return total[-1], losses

    def _buffer(self, parameters: Sequence[nn.Parameter]) -> Tensor | None:
        """Where the gradient of this process is to be, if it matters: in memory that is shared with the others."""
        like = parameters[0]
        if self._shared is None or like.device.type != "cpu":
            return None
        return self._shared.buffer(sum(each.numel() for each in parameters) + 1, like.dtype)

    def _total(self, vector: Tensor, buffer: Tensor | None) -> Tensor:
        """The sum over the processes; where there is a ``buffer``, the vector is in it."""
        if self._shared is None or buffer is None:
            return self._ranks.total(vector)
        return self._shared.total(len(vector))

    def _add(self, task: Task, work: Work, batches: Sequence[Batch]) -> list[Losses]:
        """Add the gradient of minibatches; their losses."""
        config, model = self._config, task.loaded.model
        divisor = {"sum": 1, "sentence": work.sentences, "word": work.words}[config.gradient]
        common: dict[str, Any] = {"scale": 1.0 / divisor, "autocast": config.precision == "bfloat16"}
        options = LossOptions(config.label_smoothing, config.self_normalization)
        return [backpropagate(model, batch, options, **common) for batch in batches]

    def _seed(self, update: int, microbatch: int) -> None:
        numbers = np.random.default_rng((self._config.seed, _DRAWS, update, microbatch))
        torch.manual_seed(int(numbers.integers(1 << 62)))


def _taken_out(parameters: Sequence[nn.Parameter], objective: Tensor, buffer: Tensor | None) -> Tensor:
    """The gradients and the objective as one vector, in the ``buffer`` for it; the parameters have no gradient then."""
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
    vector = flat([*gradients, objective.to(gradients[0])], buffer)
    for parameter in parameters:
        parameter.grad = None
    return vector


def _put_back(parameters: Sequence[nn.Parameter], vector: Tensor) -> None:
    sizes = [parameter.numel() for parameter in parameters]
    *parts, _ = vector.split([*sizes, 1])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def backpropagate(
    model: TranslationModel,
    batch: Batch,
    options: LossOptions | None = None,
    *,
    scale: float = 1.0,
    autocast: bool = False,
) -> Losses:
    """Add the gradient of the batch's loss, times ``scale``, to the parameters; the loss.

    The loss is the *sum* over words (Bahdanau et al. 2015 with their code).
    """
    with torch.autocast(batch.source.words_BL.device.type, dtype=torch.bfloat16, enabled=autocast):
        losses = model.loss(batch, options or LossOptions())
    losses.objective.backward(torch.full_like(losses.objective, scale))
    return losses
