"""Speed of beam search."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import of_roofline, spent, use_precision
from benchmarks.gpu.work import Text, made_up_model
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Request
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.processes import keep_memory_of_tensors

WORDS = 14  # of a translation; a sentence has as many source positions, about
_SIZES = {"cuda": (512, 64, 4096, 8, 1), "cpu": (4,)}


def rows(device: str) -> Iterator[Row]:
    """Sentences a second of RNNsearch, translations of 14 words, so many sentences in a batch."""
    keep_memory_of_tensors()
    for precision in ("bfloat16", "float32") if device == "cuda" else ("float32",):
        one = made_up_model("rnnsearch", device, use_precision(precision, device))
        for sentences in _SIZES[device]:
            for beam in (12, 5, 1) if device == "cuda" else (12, 1):
                yield {"precision": precision, "batch": sentences, "beam": beam, **_row(one, sentences, beam, device)}


def _row(one: LoadedModel, sentences: int, beam: int, device: str) -> Row:
    config = DecodingConfig(beam=beam, max_length_ratio=0.0, max_length_extra=WORDS, min_length=WORDS)
    sources = [one.encode_text(pair.source) for pair in Text(len(one.source)).parallel(sentences * 3)]
    requests = [Request(number, source, config) for number, source in enumerate(sorted(sources, key=len, reverse=True))]
    predictor = ModelPredictor(one.model)

    def search(some: list[Request[int]]) -> None:
        for _ in search_all(BeamSearch(predictor), some, batch_tokens=sentences * WORDS):
            pass

    search(requests[: len(requests) // 3])
    seconds, memory = spent(lambda: search(requests))
    some = requests[:: max(1, len(requests) // sentences)]
    dtype = next(one.model.parameters()).dtype
    share = of_roofline(lambda: search(some), seconds * len(some) / len(requests), dtype, device)
    return {"sentences/s": len(requests) / seconds, "of the roofline": share, "peak GiB": memory}
