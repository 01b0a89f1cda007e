"""How often the program waits for a GPU, and on which lines."""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from benchmarks.gpu.report import Row
from benchmarks.gpu.work import Text, batch_of, made_up_model
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.beam import BeamSearch
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Request
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.training.gradient import backpropagate
from tests.pretended_gpu import PretendedGPU

CountWaits = Callable[[Callable[[], object]], Counter[str]]


def rows(device: str) -> Iterator[Row]:
    """Waits and their lines: by PyTorch's own count on a GPU, on a CPU by that of the simulated GPU. Scoring waits
    once a call, decoding once a step; nothing is promised of training.
    """  # noqa: D205
    with _counting(device) as count:
        for name in ("rnnsearch", "luong2015-global-general-feed", "rnnlm"):
            one = _on_gpu(made_up_model(name, device, torch.float32))
            pairs = Text(len(one.target)).table(200)
            scorer = ModelPairScorer([one])
            scorer.score(pairs)  # what is made once is made
            yield _row(name, "scoring", count(lambda scorer=scorer, pairs=pairs: scorer.score(pairs)), promised=1)
            if name != "rnnlm":
                search = _Search(one)
                yield _row(name, "decoding", count(search.run), promised=search.steps)
            batch = batch_of(one, pairs[:16])
            model = one.model.train().requires_grad_(True)
            yield _row(name, "gradient", count(lambda model=model, batch=batch: backpropagate(model, batch)))


def _row(name: str, work: str, lines: Counter[str], *, promised: int | None = None) -> Row:
    places = "; ".join(f"{line} ({count})" for line, count in lines.most_common(8))
    ok = None if promised is None else lines.total() == promised
    return {"what": name, "work": work, "waits": lines.total(), "promised": promised, "lines": places, "ok": ok}


def _on_gpu(one: LoadedModel) -> LoadedModel:
    return replace(one, model=copy.deepcopy(one.model).to("cuda"))


class _Search:
    """A beam search of 30 sentences, which counts its steps."""

    def __init__(self, one: LoadedModel) -> None:
        self.search, self.steps = BeamSearch[int](ModelPredictor(one.model)), 0
        config = DecodingConfig(beam=4, max_length_ratio=0, max_length_extra=6)
        pairs = Text(len(one.source)).parallel(30)
        self.requests = [Request(number, one.encode_text(pair.source), config) for number, pair in enumerate(pairs)]

    def run(self) -> None:
        """Search to the end."""
        self.search.admit(self.requests)
        while self.search.sentences:
            self.search.step()
            self.steps += 1


@contextmanager
def _counting(device: str) -> Iterator[CountWaits]:
    """A function that counts the waits of some work by line."""
    if device == "cuda":
        yield _by_pytorch
        return
    with PretendedGPU() as gpu:

        def by_simulation(work: Callable[[], object]) -> Counter[str]:
            before = len(gpu.seen)
            work()
            return Counter(wait.line for wait in gpu.seen[before:] if wait.reason != "pageable")

        yield by_simulation


def _by_pytorch(work: Callable[[], object]) -> Counter[str]:
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found = [one for one in caught if "synchronizing" in str(one.message)]
    return Counter(f"{os.path.relpath(one.filename)}:{one.lineno}" for one in found)
