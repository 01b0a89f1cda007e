"""The update of the parameters: Adadelta as in the papers, Adam or SGD; rescaled gradients; learning rates."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from nmt_core.training.config import TrainingConfig


def build_optimizer(config: TrainingConfig, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Adadelta with rho 0.95 and epsilon 1e-6 (Bahdanau et al. 2015, appendix B.2), Adam, or SGD without momentum."""
    match config.optimizer:
        case "adadelta":
            return torch.optim.Adadelta(parameters, lr=config.learning_rate, rho=0.95, eps=1e-6)
        case "adam":
            return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
        case "sgd":
            return torch.optim.SGD(parameters, lr=config.learning_rate)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The L2 norm of the gradient of all parameters together."""
    return torch.nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])


def rescale_gradient(parameters: Iterable[nn.Parameter], limit: float, norm: Tensor | None = None) -> Tensor:
    """Rescale the gradient of all parameters together to an L2 norm of at most ``limit``; the norm before.

    A ``norm`` that is given, on the host, is not read from a GPU again.
    The numbers are those of ``torch.nn.utils.clip_grad_norm_``, but gradients are replaced, not written to, and only
    where they change: other processes may read them (``shared_sum.py``).
    """
    parameters = list(parameters)
    norm = gradient_norm(parameters) if norm is None else norm
    factor = limit / (norm + 1e-6)
    if not factor >= 1:  # it may be no number
        for each in parameters:
            each.grad = None if each.grad is None else each.grad * factor
    return norm


def rate_factor(config: TrainingConfig, *, update: int, epochs: float) -> float:
    """What the learning rate is multiplied with at update number ``update`` (from 1), after ``epochs`` epochs (as 1.5).

    Warm-up rises in a straight line and meets the schedule at update ``warmup``. A function of its arguments alone,
    so that there is no state to be saved.
    """
    rising = min(1.0, update / config.warmup) if config.warmup else 1.0
    return rising * _falling(config, update, epochs)


def _falling(config: TrainingConfig, update: int, epochs: float) -> float:
    """Halving: Luong et al. 2015; inverse square root: Vaswani et al. 2017, section 5.3, without its warm-up."""
    beyond = (epochs - config.decay_after) / config.decay_every
    match config.schedule:
        case "constant":
            return 1.0
        case "inverse-sqrt":
            first = max(config.warmup, 1)
            return math.sqrt(first / max(update, first))
        case "exponential":
            return float(config.decay ** max(beyond, 0.0))
        case "halving":
            return float(config.decay ** (math.floor(beyond + 1e-9) + 1)) if beyond > -1e-9 else 1.0
