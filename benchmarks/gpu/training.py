"""Speed of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import PRECISIONS, of_roofline, spent, use_precision
from benchmarks.gpu.work import Text, batch_of, made_up_model
from nmt_core.batches.padding import Batch
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.training.config import TrainingConfig
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import build_optimizer, rescale_gradient

PRESETS = ("rnnsearch", "luong2015-global-general-feed", "luong2015-base")


def updates_of(one: LoadedModel, precision: str) -> Callable[[Batch], float]:
    """An update with a minibatch, by Adam; the loss of a word before it."""
    model = one.model.train().requires_grad_(True)
    optimizer = build_optimizer(TrainingConfig(optimizer="adam", learning_rate=0.0005), model.parameters())

    def update(batch: Batch) -> float:
        optimizer.zero_grad()
        words = int(batch.target.mask_BL.sum())
        losses = backpropagate(model, batch, scale=1.0 / words, autocast=precision == "bfloat16")
        rescale_gradient(model.parameters(), 1.0)
        optimizer.step()
        return float(losses.objective.detach()) / words

    return update


def rows(device: str) -> Iterator[Row]:
    """Target words a second in training, forward, backward, clipping and Adam, with minibatches of some sentences."""
    for name in PRESETS if device == "cuda" else PRESETS[:1]:
        for precision in PRECISIONS[device]:
            for sentences in (80, 512) if device == "cuda" else (3,):
                yield _row(name, precision, sentences, device)


def _row(name: str, precision: str, sentences: int, device: str) -> Row:
    use_precision(precision, device)
    one = made_up_model(name, device, torch.float32)
    update = updates_of(one, precision)
    pairs = sorted(Text(len(one.target)).parallel(sentences * 8), key=lambda pair: len(pair.target.split()))
    batches = [batch_of(one, pairs[first : first + sentences]) for first in range(0, len(pairs), sentences)]
    update(batches[-1])
    seconds, memory = spent(lambda: [update(batch) for batch in batches])
    middle = batches[len(batches) // 2]
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    share = of_roofline(lambda: update(middle), spent(lambda: update(middle)).seconds, dtype, device)
    words = sum(int(batch.target.mask_BL.sum()) for batch in batches)
    return {"what": name, "precision": precision, "sentences": sentences, "words/s": words / seconds,
            "of the roofline": share, "peak GiB": memory}  # fmt: skip
