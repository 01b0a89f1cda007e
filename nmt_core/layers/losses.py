"""Cross-entropy of known words, computed so that logits never fill the memory.

Logits, loss and their gradient are made for a slice of the rows at a time, whatever the generator. Sums are named
and counted, so that trainer and reports need not know what a model's loss is made of.

Shapes: N rows (words that are no padding), L units of the readout, V words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt_core.layers.generator import Generator

LOGITS_OF_A_PRODUCT = 1 << 23  # with fewer the gradient of the output matrix is many products with few rows each
_ON_GPU = 8  # times as many on a GPU: 256 MiB in float32


@dataclass(frozen=True)
class LossSum:
    """A sum, and how many things were summed. Tensors, without gradient, are read where they are reported."""

    total: Tensor
    count: int | Tensor

    @property
    def mean(self) -> float:
        """The sum divided by the number."""
        return self.total.item() / max(int(self.count), 1)


@dataclass(frozen=True)
class Losses:
    """What is minimised, a scalar with a gradient, and the named sums it is made of."""

    objective: Tensor
    sums: Mapping[str, LossSum]


@dataclass(frozen=True)
class LossOptions:
    """What is minimised beside the negative log-likelihood.

    With ``label_smoothing`` e the goal is 1 - e on the word and e / V on every word (Szegedy et al. 2016, section 7).
    ``self_normalization`` is the weight of the squared log-normaliser of every word (Devlin et al. 2014, section 2.2):
    a model trained with it can be scored without the normaliser.
    """

    label_smoothing: float = 0.0
    self_normalization: float = 0.0


def word_loss(generator: Generator, readout_NL: Tensor, words_N: Tensor, options: LossOptions) -> Losses:
    """The summed loss of words, in nats: ``words`` and, where it is asked for, ``self-normalisation``."""
    weights = [parameter for parameter in generator.parameters() if parameter.requires_grad]
    sums: tuple[Tensor, Tensor, Tensor] = _SlicedCrossEntropy.apply(  # type: ignore[no-untyped-call]  # torch has no types here
        readout_NL, words_N, generator, options, torch.is_grad_enabled(), *weights
    )
    objective, words, penalty = sums
    found = {"words": LossSum(words, len(words_N))}
    if options.self_normalization:
        found["self-normalisation"] = LossSum(penalty, len(words_N))
    return Losses(objective, found)


class _SlicedCrossEntropy(torch.autograd.Function):
    """Loss and gradients in one pass over the slices; the way back only scales the gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        readout_NL: Tensor,
        words_N: Tensor,
        generator: Generator,
        options: LossOptions,
        differentiate: bool,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Objective, and the parts that are reported."""
        words, penalty = readout_NL.new_zeros((), dtype=torch.float32), readout_NL.new_zeros((), dtype=torch.float32)
        rows = max(1, LOGITS_OF_A_PRODUCT * (_ON_GPU if readout_NL.is_cuda else 1) // generator.words)
        into_readout: list[Tensor] = []
        into_weights: list[Tensor] = []
        for part_NL, goal_N in zip(readout_NL.split(rows), words_N.split(rows), strict=True):
            with torch.set_grad_enabled(differentiate):
                cut_NL = part_NL.detach().requires_grad_(differentiate)
                logits_NV = generator.logits(cut_NL)
            nll, squares, gradient_NV = _cross_entropy(logits_NV.detach(), goal_N, options)
            words += nll
            penalty += squares
            if differentiate:
                found = torch.autograd.grad(logits_NV, [cut_NL, *weights], gradient_NV.to(logits_NV.dtype))
                into_readout.append(found[0])
                into_weights = _sums(into_weights, list(found[1:]))
        ctx.gradients = [torch.cat(into_readout), *into_weights] if into_readout else []
        ctx.mark_non_differentiable(words, penalty)
        return words + penalty, words, penalty

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Times the gradient by the objective, which is a number."""
        gradients, ctx.gradients = ctx.gradients, []
        into_readout, *into_weights = (gradient.mul_(upstream[0]) for gradient in gradients)
        return into_readout, None, None, None, None, *into_weights


def _sums(first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
    """The sums of two lists, in place of the first, which is empty at first."""
    return [one.add_(other) for one, other in zip(first, second, strict=True)] if first else second


def _cross_entropy(logits_NV: Tensor, goal_N: Tensor, options: LossOptions) -> tuple[Tensor, Tensor, Tensor]:
    """The summed loss, the summed penalty, and their gradient by the logits, softmax minus goal, from one normaliser.

    With self-normalisation a, a (log Z)^2 is added, whose gradient is 2 a log Z times the softmax.
    """
    words, smoothing = logits_NV.shape[1], options.label_smoothing
    log_probs_NV = torch.log_softmax(logits_NV, dim=1, dtype=torch.float32)
    goal_N1 = goal_N.unsqueeze(1)
    picked_N1 = log_probs_NV.gather(1, goal_N1)
    losses_N1 = -(1.0 - smoothing) * picked_N1
    if smoothing:
        losses_N1 = losses_N1 - smoothing / words * log_probs_NV.sum(dim=1, keepdim=True)
    penalties_N1 = torch.zeros_like(losses_N1)
    gradient_NV = log_probs_NV.exp_()
    if options.self_normalization:
        log_normalizers_N1 = logits_NV.gather(1, goal_N1).float() - picked_N1
        penalties_N1 = options.self_normalization * log_normalizers_N1.square()
        gradient_NV *= 1.0 + 2.0 * options.self_normalization * log_normalizers_N1
    if smoothing:
        gradient_NV -= smoothing / words
    gradient_NV.scatter_add_(1, goal_N1, torch.full_like(goal_N1, smoothing - 1.0, dtype=torch.float32))
    return losses_N1.sum(), penalties_N1.sum(), gradient_NV
