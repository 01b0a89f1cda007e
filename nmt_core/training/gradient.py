"""The gradient of an update: of its minibatches one after the other, or of microbatches that processes share.

Without ``microbatches`` every minibatch adds to the gradient. With G of them each is computed for itself, with random
numbers that depend on seed, update and its own number alone. They are added in a fixed order (``processes.py``): one
process that computes all and G processes that compute one each end with the same bits.

Minimum risk training (Shen et al. 2016) takes the expected error of translations instead of their likelihood:

    R = sum over y in S of Q(y) D(y),    Q(y) = P(y | x)^alpha / sum over y' in S of P(y' | x)^alpha

S are the distinct translations among samples of the model, and the reference (algorithm 1 of the paper). D is 1 - BLEU
of the sentence, its n-gram precisions smoothed by one (Lin and Och 2004), over the words as the model reads them. The
gradient is that of the sum of c(y) log P(y | x) with

    c(y) = alpha Q(y) (D(y) - R)

held fixed, so it is the gradient of a weighted likelihood. There is no dropout in it, since samples, Q and gradient
have to be of one distribution. Samples depend on seed, update and index alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor, nn

from nmt_core.batches.padding import Batch, Padded, group_by_length, pad
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.sampling import sample
from nmt_core.layers.losses import Losses, LossOptions, LossSum
from nmt_core.models.interface import TranslationModel
from nmt_core.training.config import MinimumRiskConfig, TrainingConfig
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

    def compute(self, task: Task, work: Work, *, update: int, epochs: float) -> tuple[Tensor, list[Losses]]:
        """The objective of the whole update, and the losses of this process's minibatches.

        Parameters are expected to have no gradient.
        """
        if self._config.microbatches == 1:
            losses = self._add(task, work, work.batches, first=0, update=update, epochs=epochs)
            return torch.stack([each.objective.detach() for each in losses]).sum(), losses
        parameters = [parameter for parameter in task.loaded.model.parameters() if parameter.requires_grad]
        each, losses = self._config.update_every, list[Losses]()
        added, buffer = OrderedSum(len(self._microbatches)), self._buffer(parameters)
        for place, number in enumerate(self._microbatches):
            self._seed(update, number)
            batches = work.batches[place * each : (place + 1) * each]
            found = self._add(task, work, batches, first=number * each, update=update, epochs=epochs)
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

    def _add(
        self, task: Task, work: Work, batches: Sequence[Batch], *, first: int, update: int, epochs: float
    ) -> list[Losses]:
        """Add the gradient of minibatches, the ``first`` of which has this place in the update; their losses."""
        config, model = self._config, task.loaded.model
        divisor = {"sum": 1, "sentence": work.sentences, "word": work.words}[config.gradient]
        common: dict[str, Any] = {"scale": 1.0 / divisor, "autocast": config.precision == "bfloat16"}
        if config.minimum_risk is not None:
            first += (update - 1) * config.plan.group
            return [
                backpropagate_risk(model, batch, config.minimum_risk, seed=config.seed, number=first + place, **common)
                for place, batch in enumerate(batches)
            ]
        guided = config.guided_alignment
        alignment = 0.0 if guided is None else guided.weight_after(epochs)
        options = LossOptions(config.label_smoothing, config.self_normalization, alignment)
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
    weights_B: Tensor | None = None,
) -> Losses:
    """Add the gradient of the batch's loss, times ``scale``, to the parameters; the loss.

    The loss is the *sum* over words (Bahdanau et al. 2015 with their code), of sentences with ``weights_B``.
    """
    with torch.autocast(batch.source.words_BL.device.type, dtype=torch.bfloat16, enabled=autocast):
        losses = model.loss(batch, options or LossOptions(), weights_B=weights_B)
    losses.objective.backward(torch.full_like(losses.objective, scale))
    return losses


_TOKENS = 8000  # padded words that are scored together
_PLACES = 1 << 24  # sentences of an update at most

Words = tuple[int, ...]


@dataclass(frozen=True)
class Candidates:
    """The translations of a source that its risk is taken over, and their errors."""

    targets: Sequence[Words]
    errors: Tensor


def backpropagate_risk(
    model: TranslationModel,
    batch: Batch,
    config: MinimumRiskConfig,
    *,
    seed: int,
    number: int,
    scale: float = 1.0,
    autocast: bool = False,
) -> Losses:
    """Add the gradient of the summed risk of the batch's sources, times ``scale``, to the parameters; the risk.

    ``number`` is one that no other batch of the run has.
    """
    model.eval()
    spaces = draw_candidates(model, batch, config, seed=seed, number=number)
    pairs = [(row, target) for row, space in enumerate(spaces) for target in space.targets]
    groups = _groups(pairs, batch.source.lengths)
    device = batch.source.words_BL.device
    with torch.no_grad():
        parts = [model(_batch(batch.source, pairs, group)).double().sum(dim=1) for group in groups]
    log_probs = torch.cat(parts)
    order = torch.tensor([place for group in groups for place in group], device=device)
    log_probs_P = torch.empty_like(log_probs).index_copy_(0, order, log_probs)
    risks, weights = [], []
    for space, part in zip(spaces, log_probs_P.split([len(space.targets) for space in spaces]), strict=True):
        risk, weights_K = risk_weights(part, space.errors.to(device), sharpness=config.sharpness)
        risks.append(risk)
        weights.append(weights_K)
    weights_P = torch.cat(weights).float()
    for group in groups:
        factors = -weights_P[torch.tensor(group, device=device)]  # the loss is -log P
        part = _batch(batch.source, pairs, group)
        backpropagate(model, part, scale=scale, autocast=autocast, weights_B=factors)
    total = torch.stack(risks).sum().float()
    return Losses(total, {"risk": LossSum(total, len(spaces))})


def risk_weights(log_probs_K: Tensor, errors_K: Tensor, *, sharpness: float) -> tuple[Tensor, Tensor]:
    """R, and c: what log P of every translation is to be multiplied with for the gradient of R."""
    shares_K = torch.softmax(sharpness * log_probs_K, dim=0)
    risk = (shares_K * errors_K).sum()
    return risk, sharpness * shares_K * (errors_K - risk)


def draw_candidates(
    model: TranslationModel, batch: Batch, config: MinimumRiskConfig, *, seed: int, number: int
) -> list[Candidates]:
    """For every source its reference and the distinct translations among the samples, with their errors."""
    with torch.inference_mode():
        memory = model.encode(batch.source)
        started = memory, model.start(memory)
    drawn = sample(
        ModelPredictor(model),
        started,
        batch.source.lengths,
        config=SamplingConfig(samples=config.samples, seed=seed),
        numbers=range(number * _PLACES, number * _PLACES + batch.source.rows),
    )
    found = []
    for reference, hypotheses in zip(_unpadded(batch.target), drawn, strict=True):
        targets = list(dict.fromkeys([reference, *(tuple(hypothesis.words) for hypothesis in hypotheses)]))
        errors = [1.0 - sentence_bleu(target, reference) for target in targets]
        found.append(Candidates(targets, torch.tensor(errors, dtype=torch.float64)))
    return found


def sentence_bleu(words: Words, reference: Words) -> float:
    """BLEU of one sentence, from 0 to 1; one is added to the counts of n-grams longer than a word."""
    return float(_BLEU.sentence_score(_text(words), [_text(reference)]).score) / 100.0


_BLEU = BLEU(smooth_method="add-k", smooth_value=1, effective_order=True, tokenize="none", force=True)


def _text(words: Words) -> str:
    return " ".join(map(str, words))


def _unpadded(padded: Padded) -> list[Words]:
    """The sentences without their ends."""
    return [tuple(words[:length]) for words, length in zip(padded.words_BL.tolist(), padded.lengths, strict=True)]


def _groups(pairs: Sequence[tuple[int, Words]], source_lengths: Sequence[int]) -> list[list[int]]:
    """Places of pairs of like length, as many as are scored together."""
    lengths = [max(source_lengths[row], len(target)) + 1 for row, target in pairs]
    return list(group_by_length(lengths, limit=_TOKENS))


def _batch(sources: Padded, pairs: Sequence[tuple[int, Words]], places: Sequence[int]) -> Batch:
    """Pairs of a row of ``sources`` and a target."""
    target = pad([pairs[place][1] for place in places])
    return Batch(sources.select([pairs[place][0] for place in places]), target.to(sources.words_BL.device))
