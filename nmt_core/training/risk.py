"""Minimum risk training (Shen et al. 2016): the expected error of translations instead of their likelihood.

    R = sum over y in S of Q(y) D(y),    Q(y) = P(y | x)^alpha / sum over y' in S of P(y' | x)^alpha

S are the distinct translations among samples of the model, and the reference (algorithm 1 of the paper); D is
1 - BLEU of the sentence, its n-gram precisions smoothed by one (Lin and Och 2004), over the words as the model
reads them. The gradient is that of the sum of c(y) log P(y | x) with

    c(y) = alpha Q(y) (D(y) - R)

held fixed, so that it is the gradient of a likelihood with weights. There is no dropout in it, since samples, Q
and gradient have to be of one distribution. Samples depend on seed, update and place alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from nmt_core.batches.padding import Batch, Padded, group_by_length, pad
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.sampling import sample
from nmt_core.layers.losses import Losses, LossSum
from nmt_core.models.interface import TranslationModel
from nmt_core.training.config import MinimumRiskConfig
from nmt_core.training.losses import backpropagate

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
    drawn = sample(
        ModelPredictor(model),
        batch.source,
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
