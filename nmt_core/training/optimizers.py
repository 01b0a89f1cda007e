"""The update of the parameters: Adadelta as in the papers, Adam or SGD; rescaling of the gradient."""

from __future__ import annotations

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


def rescale_gradient(parameters: Iterable[nn.Parameter], limit: float) -> Tensor:
    """Rescale the gradient of all parameters together to an L2 norm of at most ``limit``; the norm before."""
    return torch.nn.utils.clip_grad_norm_(parameters, limit)
