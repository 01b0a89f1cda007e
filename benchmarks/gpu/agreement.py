"""Whether a GPU computes what a CPU computes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch

from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import use_precision
from benchmarks.gpu.work import Text, batch_of, made_up_model
from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.presets import PRESETS
from nmt_core.training.gradient import backpropagate

WORDS = 5_000  # so that the CPU is quick, too
LARGEST = {"float32": 1e-4, "bfloat16": 0.05}  # difference of log p, for each target word


def rows(device: str) -> Iterator[Row]:
    """Scores beside the CPU's in float32, the largest difference of log p for a word, at most 1e-4 (bfloat16: 0.05);
    gradients of float32 beside the CPU's, the norm of the difference over the norm, at most 1e-4.
    """  # noqa: D205
    words = WORDS if device == "cuda" else 200
    pairs = Text(words).parallel(16) if device == "cuda" else Text(words).table(4)
    for name in PRESETS:
        one = made_up_model(name, device, torch.float32, words=words, dropout=0.0)
        here = _at(one, "cpu")
        found = {precision: _score_difference(here, one, precision, device, pairs) for precision in LARGEST}
        gradient = _gradient_difference(here, one, pairs)
        close = all(found[precision] <= limit for precision, limit in LARGEST.items()) and gradient <= 1e-4
        yield {"what": name, **{f"log p, {key}": value for key, value in found.items()}, "gradient": gradient,
               "ok": close}  # fmt: skip


def _at(one: LoadedModel, device: str, dtype: torch.dtype = torch.float32) -> LoadedModel:
    return replace(one, model=copy.deepcopy(one.model).to(device=device, dtype=dtype))


def _score_difference(
    here: LoadedModel, there: LoadedModel, precision: str, device: str, pairs: list[SentencePair]
) -> float:
    there = _at(there, device, use_precision(precision, device))
    scores = [ModelPairScorer([model]).score(pairs) for model in (here, there)]
    lengths = [len(pair.target.split()) + 1 for pair in pairs]
    return max(abs(a.log_prob - b.log_prob) / n for a, b, n in zip(*scores, lengths, strict=True))


def _gradient_difference(here: LoadedModel, there: LoadedModel, pairs: list[SentencePair]) -> float:
    use_precision("float32", "cpu")
    gradients = []
    for one in (here, there):
        model = one.model.train().requires_grad_(True)
        backpropagate(model, batch_of(one, pairs))
        gradients.append(torch.cat([each.grad.flatten().cpu() for each in model.parameters() if each.grad is not None]))
    return float((gradients[0] - gradients[1]).norm() / gradients[0].norm())
