"""Whether every preset can be trained in every precision."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import PRECISIONS, use_precision
from benchmarks.gpu.training import updates_of
from benchmarks.gpu.work import Text, batch_of, made_up_model
from nmt_core.models.presets import PRESETS


def rows(device: str) -> Iterator[Row]:
    """Two updates of every preset in every precision: the loss of a word before and after them, which falls."""
    words = 5_000 if device == "cuda" else 200
    pairs = Text(words).parallel(16) if device == "cuda" else Text(words).table(4)
    for name in PRESETS:
        row: Row = {"what": name, "ok": True}
        for precision in PRECISIONS[device]:
            use_precision(precision, device)
            one = made_up_model(name, device, torch.float32, words=words, dropout=0.0)
            update = updates_of(one, precision)
            batch = batch_of(one, pairs)
            losses = [update(batch) for _ in range(3)]
            row[precision] = f"{losses[0]:.3f} {losses[-1]:.3f}"
            row["ok"] = row["ok"] and losses[-1] < losses[0]
        yield row
